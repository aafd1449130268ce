"""The completer by itself, on a real store: what it makes of commits without an answer."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.engine.apps import Apps
from tests.engine.recorder import Recorder
from windlass import JobStatus
from windlass.domain.clock import VirtualClock, monotonic
from windlass.domain.transition import succeeded
from windlass.engine.attempt import Attempt
from windlass.engine.completer import Completer
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import FailpointError, armed
from windlass.stores.open import open_database
from windlass.testing.contract.workbench import Workbench

UNSTORABLE = '"nul \0 and lone \udce9 surrogate"'
"""No database takes both."""


@pytest.fixture
def bench(apps: Apps) -> Iterator[Workbench]:
    apps()  # which migrates
    clock = VirtualClock()
    database = open_database(apps.url, clock)
    yield Workbench(database, clock)
    database.close()


def ended(bench: Workbench, count: int, result: str) -> list[Attempt]:
    """Attempts whose bodies have returned."""
    bench.put(count)
    claimed = bench.claim_all(count)
    attempts = []
    for claim in claimed.claims:
        transition = succeeded(claim, bench.times(), result, holds_key=False)
        attempts.append(Attempt(claim, claimed.payloads[claim.job_id], monotonic(), transition=transition))
    return attempts


def test_parts_of_a_split_flush_are_all_written_as_unsurely_as_the_whole(bench: Workbench):
    """J4.3: a commit has no answer, and a job the database refuses joins the next try: no outcome counts as late."""

    async def flush() -> None:
        published: list[Attempt] = []
        completer = Completer(bench.database, Recorder(published), ErrorHandling())
        for attempt in fine:
            completer.finish(attempt)
        with armed("store.after_commit=raise@1"), pytest.raises(FailpointError):
            await completer.tick()
        assert published == []
        completer.finish(refused)
        await completer.tick()
        assert (published, completer.stale, completer.unwritten) == ([*fine, refused], 0, set())
        await bench.database.aclose_loop()

    fine = ended(bench, 4, '"fine"')
    (refused,) = ended(bench, 1, UNSTORABLE)
    asyncio.run(flush())
    assert [bench.job(attempt.claim.job_id).status for attempt in fine] == [JobStatus.SUCCEEDED] * 4
    assert bench.job(refused.claim.job_id).reason == "poison_payload"
    assert {len(bench.outcomes(attempt.claim.job_id)) for attempt in [*fine, refused]} == {1}
