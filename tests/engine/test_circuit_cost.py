"""Ten thousand jobs behind an open circuit cost next to nothing, and do not stampede when it lets trials through."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine import gated_jobs, jobs
from tests.engine.apps import LONG, Apps, Gate, until
from tests.engine.gated_jobs import BROKEN
from tests.stores.recording import recorded
from windlass import CircuitProfile, CircuitState, JobStatus, PollerSettings, Settings, Windlass
from windlass.stores.plan import Step
from windlass.stores.plans import claims, queues

MANY = 10_000
BUSY = Settings(poller=PollerSettings(burst_delay=0.02, min_delay=0.02, max_delay=0.02, deep_idle_delay=0.02))
"""Looks for work as often as it can."""


class Asked:
    """What the worker asked of the store, step by step."""

    def __init__(self) -> None:
        self.looks: list[Step] = []
        self.claims: list[Step] = []

    @property
    def times_looked(self) -> int:
        return sum(step.name == "heads" for step in self.looks)

    def clear(self) -> None:
        self.looks.clear()
        self.claims.clear()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """Looks on at looks and claims."""
    seen = Asked()
    monkeypatch.setattr(claims, "claim", recorded(seen.claims, claims.claim))
    monkeypatch.setattr(queues, "heads", recorded(seen.looks, queues.heads))
    yield seen
    BROKEN[0] = True


def behind_an_open_circuit(apps: Apps, **settings: Any) -> Windlass:
    app = apps(settings=BUSY, allow=["tests.engine.gated_jobs", "tests.engine.jobs"])
    app.configure_circuit("gateway", CircuitProfile.FAST, minimum_calls=1, **settings)
    return app


def test_nothing_is_claimed_for_as_long_as_the_circuit_is_open(apps: Apps, asked: Asked):
    """J6.1, J3.4: every look is a few statements, no look leads to a claim, and no job is touched."""
    app = behind_an_open_circuit(apps)
    app.circuit("gateway").open()
    call = app.job(circuit="gateway")(gated_jobs.call_gateway)
    handles = app.enqueue_many([call.bind(number) for number in range(MANY)])
    with app.worker(concurrency=100):
        until(lambda: asked.times_looked >= 3)
        asked.clear()
        until(lambda: asked.times_looked >= 50)
        assert asked.claims == []
        assert len(asked.looks) <= 5 * (asked.times_looked + 1)
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
    assert {handle.status() for handle in handles[::500]} == {JobStatus.PENDING}
    assert [app.history(handle.id) for handle in handles[::500]] == [[]] * 20
    assert jobs.seen == []


def test_a_half_open_circuit_allows_only_its_trials(apps: Apps, asked: Asked, gate: Gate):
    """J6.1: two of ten thousand start; while they run, nothing else is even claimed."""
    app = behind_an_open_circuit(apps, open_wait=0.2)
    with app.worker(concurrency=100):
        app.job(circuit="gateway")(gated_jobs.call_gateway).enqueue(1)
        until(lambda: app.circuit("gateway").state() is not CircuitState.CLOSED)
        hold = app.job(circuit="gateway")(jobs.ahold)
        handles = app.enqueue_many([hold.bind(gate.name) for _ in range(MANY)])
        until(lambda: len(app.find(status=JobStatus.RUNNING).items) == 2)
        asked.clear()
        until(lambda: asked.times_looked >= 30)
        assert len(app.find(status=JobStatus.RUNNING).items) == 2
        assert {step.name for step in asked.claims}.isdisjoint({"claim_chosen", "claim_lane_level", "claim_gated"})
        app.circuit("gateway").open()
        for job in app.find(status=JobStatus.RUNNING):
            app.cancel(job.id)
        gate.open()
    assert sum(handle.status() is JobStatus.CANCELED for handle in handles[:10]) <= 2
