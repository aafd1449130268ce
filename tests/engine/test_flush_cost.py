"""What a flush of outcomes costs: plain jobs pay nothing for features that concern others."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engine.apps import Apps
from tests.engine.recorder import Recorder
from tests.stores.recording import recorded, statements
from windlass import JobRetrying, Windlass
from windlass.domain.clock import VirtualClock, monotonic
from windlass.domain.job import Claim
from windlass.domain.transition import Transition, dead_letter, retry_at, succeeded
from windlass.engine.attempt import Attempt
from windlass.engine.completer import Completer
from windlass.features import features_of, follow_ups_of
from windlass.runtime.error_handling import ErrorHandling
from windlass.stores.database import Database
from windlass.stores.open import open_database
from windlass.stores.plan import Step
from windlass.testing.contract.workbench import FAILURE, Workbench

FLUSH = 200
PLAIN = {
    "postgres": ["finish_succeeded"],
    "sqlite": [
        *("stage_successes", "finish_done", "insert_attempts", "release_permits"),
        *("finish_hot", "count_ended", "clear_staged"),
    ],
}


class Recording:
    """A database that records the steps of the plans it runs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.steps: list[Step] = []

    async def arun(self, plan: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._database.arun(recorded(self.steps, plan), *args, **kwargs)


@pytest.fixture
def app(apps: Apps) -> Windlass:
    return apps()


@pytest.fixture
def bench(apps: Apps, app: Windlass) -> Iterator[Workbench]:
    del app  # it has migrated
    clock = VirtualClock()
    database = open_database(apps.url, clock)
    yield Workbench(database, clock)
    database.close()


def flush(app: Windlass, bench: Workbench, transition: Callable[[Claim], Transition]) -> tuple[list[Step], Recorder]:
    """Write the outcomes of some claimed jobs as a worker of this application does."""
    bench.put(FLUSH)
    claimed = bench.claim_all(FLUSH)
    recording, published = Recording(bench.database), Recorder([])

    async def write() -> None:
        follow_ups = follow_ups_of(features_of(app.parts))
        completer = Completer(recording, published, ErrorHandling(), follow_ups=follow_ups)  # type: ignore[arg-type]
        for claim in claimed.claims:
            payload = claimed.payloads[claim.job_id]
            completer.finish(Attempt(claim, payload, monotonic(), transition=transition(claim)))
        await completer.tick()
        await bench.database.aclose_loop()

    asyncio.run(write())
    assert len(published.attempts) == FLUSH
    return recording.steps, published


def test_a_flush_of_plain_successes_is_a_single_statement(app: Windlass, bench: Workbench):
    """J4.1: with every feature registered it is one statement without a transaction, on SQLite the same five steps."""
    steps, _ = flush(app, bench, lambda claim: succeeded(claim, bench.times(), '"x"', holds_key=False))
    name = bench.database.dialect.name
    assert [step.name for step in steps] == PLAIN[name]
    assert [step.alone for step in steps] == [name == "postgres"] * len(steps)


def test_due_times_of_retries_are_read_only_for_event_subscribers(app: Windlass, bench: Workbench):
    """J5.1: the event names the stored time; without a subscriber nothing is read."""
    times = bench.times()
    plain, _ = flush(app, bench, lambda claim: retry_at(claim, times, FAILURE, 5))
    assert "due_times" not in {step.name for step in plain}
    app.on(JobRetrying)(lambda event: None)
    executed, published = flush(app, bench, lambda claim: retry_at(claim, times, FAILURE, 5))
    assert [step.name for step in executed].count("due_times") == 1
    assert len(published.effects[0].due) == FLUSH


def test_dead_letters_of_a_flush_add_a_handful_of_statements(app: Windlass, bench: Workbench):
    """J5.4: however many jobs fail; the effects name the one that raised the alert."""
    times = bench.times()
    steps, published = flush(app, bench, lambda claim: dead_letter(claim, times, FAILURE, "x", holds_key=False))
    assert statements(steps) <= 12
    assert [len(effects.alerts) for effects in published.effects] == [1]
