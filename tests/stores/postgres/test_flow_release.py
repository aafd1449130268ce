"""PostgreSQL: followers are released whatever happens to them meanwhile, by a plan that suits empty and full tables."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.stores.databases import migrate_at
from windlass.domain.clock import VirtualClock
from windlass.domain.dependencies import EndedStep, FlowPosition, Follows
from windlass.domain.identity import new_job_ids
from windlass.domain.signal import NO_DEADLINE, SignalWait
from windlass.domain.states import JobStatus
from windlass.stores.dialect import Dialect
from windlass.stores.open import open_database
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import flows, signal_waits
from windlass.stores.postgres.session import Statements
from windlass.stores.postgres.text import ids
from windlass.stores.postgres.url import GENERIC_PLANS
from windlass.testing.contract.workbench import THREAD_TIMEOUT, Workbench, new_job
from windlass.testing.postgres_server import PostgresServer

ROWS = 4_000
CHAINS = """
INSERT INTO windlass_hot (id, queue, target, status, priority, due, fence, attempts, crash_count)
SELECT lpad(to_hex(n), 32, '0')::uuid, 'q', 't', 'PENDING', 2, CASE WHEN n % 2 = 1 THEN n END, 0, 0, 0
FROM generate_series(1, {rows}) n;
INSERT INTO windlass_flow (job_id, flow_id, parent_id, follows)
SELECT lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n - (n + 1) % 2), 32, '0')::uuid,
    CASE WHEN n % 2 = 0 THEN lpad(to_hex(n - 1), 32, '0')::uuid END, CASE WHEN n % 2 = 0 THEN 1 END
FROM generate_series(1, {rows}) n
"""
"""Jobs with odd numbers are due, each is followed by the next one."""


@pytest.fixture
def bench(clean_pg_url: str, clock: VirtualClock) -> Iterator[Workbench]:
    database = open_database(clean_pg_url, clock)
    yield Workbench(database, clock)
    database.close()


def waits_for_a_lock(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone()
    return row is not None and row[0] > 0


def test_a_follower_that_is_paused_meanwhile_is_released_and_stays_paused(bench: Workbench, clean_pg_url: str):
    """J8: a release that waited for the lock of a follower writes the row as it is then."""
    parent, follower = new_job_ids(2)
    position = FlowPosition(parent, parent_id=parent, follows=Follows.THEN.value)
    bench.submit(
        [new_job(id=parent, position=FlowPosition(parent, answers=True)), new_job(id=follower, position=position)]
    )
    with psycopg.connect(clean_pg_url, autocommit=True) as rival:
        rival.execute("UPDATE windlass_hot SET due = NULL WHERE id = %s", (follower,))
        ended = EndedStep(parent, JobStatus.SUCCEEDED, frozenset({Follows.THEN}), None)
        release = threading.Thread(target=bench.database.run, args=(flows.follow, [ended]))
        with rival.transaction():
            rival.execute("UPDATE windlass_hot SET status = 'PAUSED' WHERE id = %s", (follower,))
            release.start()
            while release.is_alive() and not waits_for_a_lock(rival):
                release.join(0.01)
        release.join(THREAD_TIMEOUT)
        found = rival.execute("SELECT status, due IS NULL FROM windlass_hot WHERE id = %s", (follower,)).fetchone()
    assert found == ("PAUSED", False)


@pytest.mark.parametrize("timeout_us", [None, 60_000_000], ids=["for ever", "timeout"])
def test_a_follower_that_is_signaled_meanwhile_is_due_at_once(
    bench: Workbench, clean_pg_url: str, timeout_us: int | None
):
    """J8.5: a release that waited for the lock of a follower sees that it waits no more, and has no deadline."""
    parent, follower = new_job_ids(2)
    due_at = NO_DEADLINE if timeout_us is None else None
    position = FlowPosition(parent, parent, Follows.THEN.value, None, timeout_us, due_at)
    waits = new_job(id=follower, position=position, wait=SignalWait("k", timeout_us), delay_us=None)
    bench.submit([new_job(id=parent, position=FlowPosition(parent, answers=True)), waits])
    ended = EndedStep(parent, JobStatus.SUCCEEDED, frozenset({Follows.THEN}), None)
    release = threading.Thread(target=bench.database.run, args=(flows.follow, [ended]))

    def deliver_slowly(dialect: Dialect) -> Plan[None]:
        yield from signal_waits.deliver(dialect, "{}", None, key="k")
        release.start()
        with psycopg.connect(clean_pg_url, autocommit=True) as looker:
            while release.is_alive() and not waits_for_a_lock(looker):
                release.join(0.01)

    bench.database.run(deliver_slowly)
    release.join(THREAD_TIMEOUT)
    assert [claim.job_id for claim in bench.claim()] == [parent, follower]


@pytest.fixture
def empty(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    url = postgres_server.create_database()
    migrate_at(url)
    with psycopg.connect(url, autocommit=True, options=GENERIC_PLANS) as connection:
        yield connection
    postgres_server.drop_database(url)


def released(connection: psycopg.Connection[Any], parents: list[int]) -> dict[str, Any]:
    """The plan by which these jobs release their followers, as it was carried out; it is rolled back."""
    values = {
        "ids": ids(f"{parent:032x}" for parent in parents),
        "follows": Follows.THEN.value,
        "most": 1_000 + len(parents),
    }
    names = Statements().numbered(Step("release_followers")).names
    given = ", ".join(f"'{values[name]}'" for name in names)
    with connection.transaction(force_rollback=True):
        row = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE kept({given})".encode()).fetchone()
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def updated(plan: dict[str, Any]) -> int:
    """How many rows the plan has written."""
    (update,) = [node for node in plan["Plans"] if node["Node Type"] == "ModifyTable"]
    return int(update["Actual Rows"])


@pytest.mark.parametrize("vacuumed", [False, True], ids=["new", "vacuumed"])
def test_a_plan_made_for_empty_tables_releases_followers_in_full_ones(
    empty: psycopg.Connection[Any], *, vacuumed: bool
):
    """J8: sessions keep their plans; one that was made on the first day must not stop a worker until ANALYZE runs."""
    if vacuumed:
        empty.execute("VACUUM ANALYZE")
    empty.execute(b"PREPARE kept AS " + Statements().numbered(Step("release_followers")).text)
    released(empty, [1])
    for text in CHAINS.format(rows=ROWS).split(";"):
        empty.execute(text.encode())
    pages = empty.execute(
        "SELECT sum(pg_relation_size(oid)) / 8192 FROM pg_class WHERE relname IN ('windlass_hot', 'windlass_flow')"
    ).fetchone()
    assert pages is not None
    plan = released(empty, [1])
    assert updated(plan) == 1
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 3 * int(pages[0])
    assert updated(released(empty, list(range(1, 200, 2)))) == 100
