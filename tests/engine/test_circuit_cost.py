"""Ten thousand jobs behind an open circuit cost next to nothing, and do not stampede when it lets trials through."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engine import gated_jobs, jobs
from tests.engine.apps import LONG, Apps, Gate, until
from tests.engine.gated_jobs import BROKEN
from windlass import CircuitProfile, CircuitState, JobStatus, PollerSettings, Settings, Windlass
from windlass.stores import claiming, queues
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan

MANY = 10_000
BUSY = Settings(poller=PollerSettings(burst_delay=0.02, min_delay=0.02, max_delay=0.02, deep_idle_delay=0.02))
"""Looks for work as often as it can."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts the statements of looks and claims, by name, and the looks and claims themselves."""
    counted: Counter[str] = Counter()

    def watched(name: str, plan: Callable[..., Plan[Any]]) -> Callable[..., Plan[Any]]:
        def onlooker(dialect: Dialect, *args: Any, **kwargs: Any) -> Plan[Any]:
            counted[name] += 1
            inner = plan(dialect, *args, **kwargs)
            answer = None
            while True:
                try:
                    step = inner.send(answer)
                except StopIteration as stop:
                    return stop.value
                counted[step.name] += 1
                answer = yield step

        return onlooker

    monkeypatch.setattr(claiming, "claim", watched("a claim", claiming.claim))
    monkeypatch.setattr(queues, "heads", watched("a look", queues.heads))
    yield counted
    BROKEN[0] = True


def behind_an_open_circuit(apps: Apps, **settings: Any) -> Windlass:
    app = apps(settings=BUSY, allow=["tests.engine.gated_jobs", "tests.engine.jobs"])
    app.configure_circuit("gateway", CircuitProfile.FAST, minimum_calls=1, **settings)
    return app


def test_nothing_is_claimed_for_as_long_as_the_circuit_is_open(apps: Apps, steps: Counter[str]):
    """J6.1, J3.4: every look is a few statements, no look leads to a claim, and no job is touched."""
    app = behind_an_open_circuit(apps)
    app.circuit("gateway").open()
    call = app.job(circuit="gateway")(gated_jobs.call_gateway)
    handles = app.enqueue_many([call.bind(number) for number in range(MANY)])
    with app.worker(concurrency=100):
        until(lambda: steps["a look"] >= 3)
        steps.clear()
        until(lambda: steps["a look"] >= 50)
        seen = Counter(steps)
        assert seen["a claim"] == 0
        statements = sum(count for name, count in seen.items() if not name.startswith("a "))
        assert statements <= 5 * (seen["a look"] + 1), seen
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
    assert {handle.status() for handle in handles[::500]} == {JobStatus.PENDING}
    assert [app.history(handle.id) for handle in handles[::500]] == [[]] * 20
    assert jobs.seen == []


def test_half_open_it_lets_its_trials_through_and_no_more(apps: Apps, steps: Counter[str], gate: Gate):
    """J6.1: two of ten thousand start; while they run, nothing else is even claimed."""
    app = behind_an_open_circuit(apps, open_wait=0.2)
    with app.worker(concurrency=100):
        app.job(circuit="gateway")(gated_jobs.call_gateway).enqueue(1)
        until(lambda: app.circuit("gateway").state() is not CircuitState.CLOSED)
        hold = app.job(circuit="gateway")(jobs.ahold)
        handles = app.enqueue_many([hold.bind(gate.name) for _ in range(MANY)])
        until(lambda: len(app.find(status=JobStatus.RUNNING).items) == 2)
        steps.clear()
        until(lambda: steps["a look"] >= 30)
        assert len(app.find(status=JobStatus.RUNNING).items) == 2
        assert steps["a claim"] <= 1, "at most the one that was under way"
        app.circuit("gateway").open()
        for job in app.find(status=JobStatus.RUNNING):
            app.cancel(job.id)
        gate.open()
    assert sum(handle.status() is JobStatus.CANCELED for handle in handles[:10]) <= 2
