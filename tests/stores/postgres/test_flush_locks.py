"""PostgreSQL: a flush that has waited for the lock of a job writes the job as it is then."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from windlass.domain.clock import VirtualClock
from windlass.domain.transition import Failure, Times, Transition, retry_at, succeeded
from windlass.stores.open import open_database
from windlass.stores.plans import jobs
from windlass.testing.contract.workbench import THREAD_TIMEOUT, Workbench, new_job

TIMES, FAILURE = Times(1, 2, 3), Failure("ValueError: no", "ValueError")


@pytest.fixture
def bench(clean_pg_url: str, clock: VirtualClock) -> Iterator[Workbench]:
    database = open_database(clean_pg_url, clock)
    yield Workbench(database, clock)
    database.close()


def outcome(bench: Workbench, ending: str) -> Transition:
    bench.submit([new_job()])
    (claim,) = bench.claim()
    if ending == "success":
        return succeeded(claim, TIMES, None, holds_key=False)
    return retry_at(claim, TIMES, FAILURE, 1)


def waits_for_a_lock(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone()
    return row is not None and row[0] > 0


@pytest.mark.parametrize("ending", ["success", "retry"])
@pytest.mark.parametrize(
    ("change", "held"), [("expires = 5", True), ("fence = fence + 1", False)], ids=["same claim", "claimed again"]
)
def test_a_flush_that_waited_checks_the_fence_again(
    bench: Workbench, clean_pg_url: str, ending: str, change: str, *, held: bool
):
    """J4.1: whatever else was written meanwhile, the outcome counts if the claim is still held, and only then."""
    transition = outcome(bench, ending)
    won: list[Any] = []

    def flush() -> None:
        won.append(bench.database.run(jobs.apply, [transition]))

    writer = threading.Thread(target=flush)
    with psycopg.connect(clean_pg_url, autocommit=True) as rival:
        with rival.transaction():
            rival.execute(f"UPDATE windlass_hot SET {change} WHERE id = %s".encode(), (transition.job_id,))
            writer.start()
            while writer.is_alive() and not waits_for_a_lock(rival):
                writer.join(0.01)
        writer.join(THREAD_TIMEOUT)
        running = rival.execute("SELECT count(*) FROM windlass_hot WHERE status = 'RUNNING'").fetchone()
        recorded = rival.execute("SELECT count(*) FROM windlass_attempt").fetchone()
    assert running == (0 if held else 1,)
    assert recorded == (1 if held else 0,)
    assert len(won) == 1
