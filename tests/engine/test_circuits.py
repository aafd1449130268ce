"""Circuits around a running worker: they open, nothing is spent behind them, trials close them, people switch them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.engine import gated_jobs, jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Gate, on_loop, settled, tried, until
from tests.engine.gated_jobs import BROKEN, CardDeclinedError, GatewayError
from windlass import (
    CircuitClosed,
    CircuitOpened,
    CircuitProfile,
    CircuitState,
    InvalidOptionError,
    JobHandle,
    JobStatus,
    Windlass,
)
from windlass.engine import room, slots
from windlass.worker import Worker

ALLOWED = ["tests.engine.gated_jobs", "tests.engine.jobs"]
OPEN, CLOSED, HALF_OPEN = CircuitState.OPEN, CircuitState.CLOSED, CircuitState.HALF_OPEN


@pytest.fixture(autouse=True)
def _gateway_down() -> Iterator[None]:
    BROKEN[0] = True
    yield
    BROKEN[0] = True


def guarded(apps: Apps, **settings: Any) -> Windlass:
    """An application whose circuit `gateway` opens at the third failure and stays open unless configured otherwise."""
    app = apps(settings=ONLY_WAKEUPS, allow=ALLOWED)
    app.configure_circuit("gateway", CircuitProfile.FAST, **{"open_wait": 600, **settings})
    return app


def calls(app: Windlass, count: int, **options: Any) -> list[JobHandle[Any]]:
    call = app.job(circuit="gateway", **options)(gated_jobs.call_gateway)
    return app.enqueue_many([call.bind(number) for number in range(count)])


def published_states(app: Windlass) -> list[str]:
    """The published events of circuits, in short."""
    states: list[str] = []
    app.on(CircuitOpened)(lambda event: states.append(f"opened {event.service}"))
    app.on(CircuitClosed)(lambda event: states.append(f"closed {event.service}"))
    return states


def trip(app: Windlass) -> list[JobHandle[Any]]:
    """Have the circuit opened by three calls, one by one."""
    handles = [calls(app, 1)[0] for _ in range(3)]
    assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.FAILED}
    until(lambda: app.circuit("gateway").state() is not CLOSED)
    return handles


def test_a_circuit_opens_when_calls_fail_and_nothing_behind_it_spends_an_attempt(apps: Apps):
    """J6.1: what waits is not claimed: no attempt, no history, and `explain` says until when."""
    app = guarded(apps)
    states = published_states(app)
    with app.worker(concurrency=10):
        trip(app)
        waiting = calls(app, 20)
        plain = app.job(jobs.add)
        assert plain.enqueue(1, 2).result(timeout=LONG) == 3, "others go on"
        assert {handle.status() for handle in waiting} == {JobStatus.PENDING}
        assert [app.history(handle.id) for handle in waiting] == [[]] * 20
        found = app.explain(waiting[0].id)
        (circuit,) = app.circuits()
        assert (found.code, found.until) == ("circuit_open", circuit.opens_at)
        until(lambda: states == ["opened gateway"])
    assert len(jobs.seen) == 3


def test_trials_close_a_circuit_once_the_service_is_back(apps: Apps):
    """J6.1: half open after its wait; what waited all runs, in its first attempt."""
    app = guarded(apps, open_wait=0.5)
    states = published_states(app)
    with app.worker():
        trip(app)
        BROKEN[0] = False
        waiting = calls(app, 20)
        assert [handle.result(timeout=LONG) for handle in waiting] == list(range(20))
        assert [app.get(handle.id).attempts for handle in waiting] == [1] * 20
    assert app.circuit("gateway").state() is CLOSED
    assert states == ["opened gateway", "closed gateway"]


def test_a_circuit_whose_trials_fail_stays_open_and_publishes_each_opening(apps: Apps):
    """J6.1: after every wait two trials at most; never a stampede."""
    app = guarded(apps, open_wait=0.3)
    states = published_states(app)
    with app.worker(concurrency=50):
        trip(app)
        calls(app, 100)
        until(lambda: len(states) >= 4)
    assert set(states) == {"opened gateway"}
    assert len(jobs.seen) - 3 <= 2 * len(states), "at most two trials for each time it was half open"


def test_on_half_open_exactly_the_trials_start(apps: Apps, gate: Gate):
    """J6.1: two go through while hundreds wait; the rest start when these have gone well."""
    app = guarded(apps, open_wait=0.2)
    with app.worker(concurrency=100):
        trip(app)
        hold = app.job(circuit="gateway")(jobs.ahold)
        handles = app.enqueue_many([hold.bind(gate.name) for _ in range(300)])
        gate.wait_entered()
        until(lambda: [app.get(handle.id).status for handle in handles[:5]].count(JobStatus.RUNNING) == 2)
        assert app.circuit("gateway").state() is HALF_OPEN
        assert app.explain(handles[-1].id).code == "circuit_on_trial"
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
        running = app.find(status=JobStatus.RUNNING)
        assert len(running.items) == 2
        gate.open()
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert {len(tried(app, handle)) for handle in handles[::25]} == {1}


def test_trials_are_bounded_with_two_nodes(apps: Apps, gate: Gate):
    """J6.1: the state is shared through the store."""
    one, two = guarded(apps, open_wait=0.3), guarded(apps, open_wait=0.3)
    hold = one.job(circuit="gateway")(jobs.ahold)
    with one.worker(concurrency=20), two.worker(concurrency=20):
        trip(one)
        handles = one.enqueue_many([hold.bind(gate.name) for _ in range(30)])
        gate.wait_entered()
        until(lambda: one.circuits()[0].state is HALF_OPEN)
        assert two.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
        assert len(one.find(status=JobStatus.RUNNING).items) <= 2
        gate.open()
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert one.circuit("gateway").state() is two.circuit("gateway").state() is CLOSED


@pytest.mark.parametrize("by_hand", [False, True], ids=["by failures", "by hand"])
def test_jobs_claimed_before_a_circuit_opened_are_requeued_without_an_attempt(
    apps: Apps, gate: Gate, monkeypatch: pytest.MonkeyPatch, by_hand: bool
):
    """J6.1: due when the circuit may be tried again; the history says `deferred`; it is not lost when it closes."""
    monkeypatch.setattr(room, "CLAIM_AHEAD", 1e6)
    monkeypatch.setattr(room, "WINDOW", 1e6)  # its pace is kept, however long the next call takes
    monkeypatch.setattr(slots, "RELEASE_AFTER", 600.0)
    app = guarded(apps, open_wait=600, minimum_calls=1, trials=1)
    hold = app.job(circuit="gateway", priority=5)(jobs.ahold)
    failing = app.job(circuit="gateway", priority=9)(gated_jobs.call_gateway)
    behind = app.bind(jobs.anote, "x").using(circuit="gateway")
    worker = app.worker(concurrency=1)
    with worker:
        app.job(jobs.add).enqueue(1, 2).result(timeout=LONG)  # from now on it has a pace, and claims ahead
        calls: list[Any] = [] if by_hand else [failing.bind(7)]
        handles = app.enqueue_many([*calls, hold.bind(gate.name), *[behind] * 4])[-4:]
        gate.wait_entered()
        until(lambda: {app.get(handle.id).status for handle in handles} == {JobStatus.RUNNING})
        if by_hand:
            app.circuit("gateway").open()
            assert worker.node is not None
            # A full node need not look: what it has claimed ahead starts, or goes back, within a second.
            on_loop(worker, worker.node.poller.anything_due())
        until(lambda: _known_to_be_shut(worker))
        gate.open()
        until(lambda: {len(tried(app, handle)) for handle in handles} == {1})
        until(lambda: {app.explain(handle.id).code for handle in handles} <= {"circuit_open", "not_due"})
        if by_hand:
            app.circuit("gateway").close()
            assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    outcomes = ("deferred", "succeeded") if by_hand else ("deferred",)
    histories = [tried(app, handle) for handle in handles]
    assert {tuple(attempt.outcome for attempt in history) for history in histories} == {outcomes}
    assert {history[0].started_at for history in histories} == {None}, "their bodies were not entered"
    assert {app.get(handle.id).attempts for handle in handles} == {1 if by_hand else 0}
    if not by_hand:
        opens_at = app.circuits()[0].opens_at
        for due_at in (app.get(handle.id).due_at for handle in handles):
            assert opens_at is not None
            assert due_at is not None
            assert abs(due_at - opens_at) < timedelta(seconds=LONG), "due when it may be tried again"


def _known_to_be_shut(worker: Worker) -> bool:
    """Whether the worker knows of it: what it knows may be a second old."""
    assert worker.node is not None
    return "gateway" in worker.node.engine.work.shut_circuits()


def test_errors_are_ignored_and_recorded_by_class(apps: Apps):
    """J6.1: a declined card says nothing about the gateway."""
    app = guarded(apps, minimum_calls=1, ignore=[CardDeclinedError], record=[GatewayError])
    decline, fail = app.job(circuit="gateway")(gated_jobs.decline), app.job(circuit="gateway")(jobs.fail)
    with app.worker():
        settled(app, decline.enqueue(1).id)
        settled(app, fail.enqueue("our own mistake").id)
        assert app.circuit("gateway").state() is CLOSED
        (circuit,) = app.circuits()
        assert (circuit.calls, circuit.failures) == (1, 0), "the declined card is not counted, the mistake went well"
        settled(app, calls(app, 1)[0].id)
        until(lambda: app.circuit("gateway").state() is OPEN)


def test_a_circuit_is_opened_and_closed_manually(apps: Apps):
    """J6.1: open until it is closed by hand, whatever its wait; published once; closing lets all through at once."""
    app = guarded(apps, open_wait=0.1)
    states = published_states(app)
    BROKEN[0] = False
    switch = app.circuit("gateway")
    with app.worker():
        switch.open()
        switch.open()
        (waits,) = calls(app, 1)
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
        (circuit,) = app.circuits()
        assert (circuit.state, circuit.held_open, circuit.opens_at) == (OPEN, True, None)
        found = app.explain(waits.id)
        assert (found.code, found.until) == ("circuit_open", None)
        switch.close()
        switch.close()
        assert waits.result(timeout=LONG) == 0
        until(lambda: states == ["opened gateway", "closed gateway"])


def test_a_switch_by_another_process_is_noticed(apps: Apps):
    """J6.1: one state for all; closed elsewhere, what waits here starts at once."""
    app, other = guarded(apps), apps(settings=ONLY_WAKEUPS)
    BROKEN[0] = False
    other.circuit("gateway").open()
    with app.worker():
        (waits,) = calls(app, 1)
        until(lambda: app.explain(waits.id).code == "circuit_open")
        other.circuit("gateway").close()
        assert waits.result(timeout=LONG) == 0


def test_reset_forgets_what_was_counted_and_close_does_not(apps: Apps):
    """J6.1: two failures of three are gone after a reset."""
    app = guarded(apps)
    switch = app.circuit("gateway")
    with app.worker():
        for handle in calls(app, 2):
            settled(app, handle.id)
        switch.close()
        assert app.circuits()[0].failures == 2, "it was closed: nothing to do"
        switch.reset()
        assert (app.circuits()[0].failures, switch.state()) == (0, CLOSED)
        settled(app, calls(app, 1)[0].id)
    assert switch.state() is CLOSED


async def test_the_async_twins_do_the_same(apps: Apps):
    """api.md: every verb that touches the store has an async twin."""
    app = apps(settings=ONLY_WAKEUPS, allow=ALLOWED)
    await app.aconfigure_circuit("gateway", CircuitProfile.CRITICAL, trials=4)
    (circuit,) = await app.acircuits()
    assert circuit.settings == CircuitProfile.CRITICAL.with_changes(trials=4)
    switch = app.circuit("gateway")
    await switch.aopen()
    assert await switch.astate() is OPEN
    await switch.aclose()
    assert await switch.astate() is CLOSED
    await switch.areset()
    assert [circuit] == await app.acircuits() == app.circuits()


def test_a_circuit_needs_no_setting_up(apps: Apps):
    """J6.1: with the settings of the DEFAULT profile; one that was never used is closed."""
    app = apps(settings=ONLY_WAKEUPS, allow=ALLOWED)
    assert app.circuit("new").state() is CLOSED
    assert app.circuits() == []
    with app.worker():
        settled(app, app.job(circuit="new")(jobs.fail).enqueue("no").id)
        until(lambda: [(one.service, one.calls, one.failures) for one in app.circuits()] == [("new", 1, 1)])
    assert app.circuits()[0].settings == CircuitProfile.DEFAULT.value


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("my gateway", {}, "circuit must be 1 to 64 characters"),
        ("gateway", {"profile": "FAST"}, r"profile must be one of CircuitProfile\.DEFAULT, .*got 'FAST'"),
        ("gateway", {"trials": 0}, "trials must be a whole number"),
        ("gateway", {"window": 3, "minimum_calls": 4}, "minimum_calls must be at most the window of 3 calls, got 4"),
        ("gateway", {"wait": 4}, "a circuit has no setting 'wait'"),
    ],
)
def test_bad_settings_are_refused(app: Windlass, name: str, arguments: dict[str, Any], complaint: str):
    """J6.1: and nothing is stored of them."""
    with pytest.raises(InvalidOptionError, match=complaint):
        app.configure_circuit(name, **arguments)
    assert app.circuits() == []
