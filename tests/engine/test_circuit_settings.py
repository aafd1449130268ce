"""The settings of circuits: what applies to those without a profile, and how often a node reads their states."""

from dataclasses import replace
from typing import Any

import pytest

from tests.engine import gated_jobs, jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps
from tests.stores.recording import recorded
from windlass import CircuitProfile, CircuitsSettings, CircuitState, JobStatus, Settings, Windlass
from windlass.engine import outlook, room
from windlass.stores.plan import Step
from windlass.stores.plans import queues


def failures_until_open(apps: Apps, **settings: Any) -> tuple[int, Windlass]:
    """How many calls of a broken service it takes to open its circuit, which has no profile."""
    gated_jobs.BROKEN[0] = True
    app = apps(settings=replace(ONLY_WAKEUPS, circuits=CircuitsSettings(**settings)), allow=["tests.engine"])
    call = app.job(circuit="gateway")(gated_jobs.call_gateway)
    with app.worker():
        for number in range(1, 20):
            assert call.enqueue(number).join(timeout=LONG) is JobStatus.FAILED
            if app.circuit("gateway").state() is CircuitState.OPEN:
                return number, app
    raise AssertionError("it never opened")


def test_circuits_without_a_profile_use_that_of_the_settings(apps: Apps):
    """api.md circuits.profile, J6.2: FAST opens after three failures, the default after five."""
    number, app = failures_until_open(apps, profile=CircuitProfile.FAST)
    assert number == 3
    (circuit,) = app.circuits()
    assert circuit.settings == CircuitProfile.FAST.value


def test_the_default_profile_applies_without_the_setting(apps: Apps):
    """J6.2: five calls at the least."""
    assert failures_until_open(apps)[0] == 5


def test_a_circuit_that_was_configured_keeps_what_it_was_given(apps: Apps):
    """api.md circuits.profile: the setting does not apply to circuits that were given the default."""
    apps().configure_circuit("gateway")
    number, app = failures_until_open(apps, profile=CircuitProfile.FAST)
    assert number == 5
    app.circuit("gateway").reset()
    (circuit,) = app.circuits()
    assert circuit.settings == CircuitProfile.DEFAULT.value


@pytest.mark.parametrize(("refresh", "least", "most"), [(0.000_001, 20, 1000), (600, 1, 10)])
def test_a_busy_node_reads_circuits_again_when_refresh_is_over(
    apps: Apps, monkeypatch: pytest.MonkeyPatch, refresh: float, least: int, most: int
):
    """api.md circuits.refresh, J6.2: what is known is believed for so long; each of 20 claims comes back full."""
    monkeypatch.setattr(room, "CLAIM_AHEAD", 0)
    monkeypatch.setattr(outlook, "BUSY_FRESH", 600)
    looks: list[Step] = []
    monkeypatch.setattr(queues, "heads", recorded(looks, queues.heads))
    app = apps(settings=Settings(poller=ONLY_WAKEUPS.poller, circuits=CircuitsSettings(refresh=refresh)))
    note = app.job(jobs.note)
    handles = app.enqueue_many([note.bind("x") for _ in range(20)])
    with app.worker(concurrency=1):
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert least <= sum(step.name == "heads" for step in looks) <= most
