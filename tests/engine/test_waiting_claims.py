"""Quick bodies on threads: the next one is ready when a thread is, and all that holds for slots holds."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, until
from windlass import JobStarted, JobStatus, Windlass
from windlass.domain.job import Payload
from windlass.engine import room, slots
from windlass.engine.attempt import Attempt
from windlass.engine.runner import Runner
from windlass.submission.call import Call
from windlass.submission.target import Known

SLOTS = 4
QUICK = 400
inside = 0
most_inside = 0
lock = threading.Lock()


def quick(seconds: float) -> None:
    """A body that counts how many of its kind run at a time."""
    global inside, most_inside  # noqa: PLW0603 - bodies have no other place
    with lock:
        inside += 1
        most_inside = max(most_inside, inside)
    threading.Event().wait(seconds)
    with lock:
        inside -= 1


def quick_or_held(name: str) -> str:
    """Quick until it is switched to slow."""
    return jobs.hold(name) if armed.is_set() else "quick"


armed = threading.Event()


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Attempt]]:
    """The waiting claims, in order."""
    global most_inside  # noqa: PLW0603 - as above
    most_inside = 0
    found: list[Attempt] = []
    make_ready = Runner.make_ready

    def seen(runner: Runner, attempt: Attempt, payload: Payload, until: float) -> Known | None:
        known = make_ready(runner, attempt, payload, until)
        if known is not None:
            found.append(attempt)
        return known

    monkeypatch.setattr(Runner, "make_ready", seen)
    yield found
    armed.clear()


def test_no_more_bodies_run_than_there_are_slots_and_each_runs_once(app: Windlass, joined: list[Attempt]):
    """J4.2, J3.6: although the next ones stand ready."""
    job = app.job(quick)
    with app.worker(concurrency=SLOTS):
        handles = app.enqueue_many([job.bind(0.002) for _ in range(QUICK)])
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert most_inside == SLOTS
    assert len(joined) > QUICK // 4
    history = [app.history(handle.id)[-1] for handle in handles[::20]]  # a claim before it may have been released
    runs = sorted(attempt.run_ms or 0 for attempt in history)
    assert runs[0] >= 1  # two milliseconds, less what rounding takes
    assert runs[len(runs) // 2] < 1000  # counted from its entry; a busy machine may stall single bodies
    assert [attempt.outcome for attempt in history] == ["succeeded"] * len(history)


def test_coroutines_and_threads_share_the_slots(app: Windlass, joined: list[Attempt]):
    """J4.2: a slot that a coroutine frees goes to the first waiting claim."""
    job, note = app.job(quick), app.job(jobs.anote)
    calls: list[Call[Any]] = [job.bind(0.002) if number % 3 else note.bind(str(number)) for number in range(QUICK)]
    with app.worker(concurrency=SLOTS):
        handles = app.enqueue_many(calls)
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert most_inside <= SLOTS
    assert len(jobs.seen) == len([number for number in range(QUICK) if number % 3 == 0])
    assert joined


def stuck_behind(app: Windlass, gate: Gate) -> list[str]:
    """Quick jobs until some stand in line, then ones that hold all slots; ids of all that were enqueued then."""
    job = app.job(quick_or_held)
    for handle in app.enqueue_many([job.bind(gate.name) for _ in range(QUICK)]):
        assert handle.result(timeout=LONG) == "quick"
    armed.set()
    return [str(handle.id) for handle in app.enqueue_many([job.bind(gate.name) for _ in range(20)])]


def outcomes_of(app: Windlass, job: str) -> list[str | None]:
    return [attempt.outcome for attempt in app.history(job)]


def test_a_claimed_job_that_waits_too_long_for_a_slot_is_released(apps: Apps, gate: Gate, joined: list[Attempt]):
    """J3.6: no claim is kept from other nodes while bodies take long, and no attempt is spent."""
    app = apps()
    app.job(quick_or_held)
    with app.worker(concurrency=SLOTS):
        ids = stuck_behind(app, gate)
        until(lambda: sum(app.get(job).status is JobStatus.PENDING for job in ids) == len(ids) - SLOTS)
        gate.open()
        assert all(app.handle(job).join(timeout=LONG) is JobStatus.SUCCEEDED for job in ids)
    assert joined
    assert all(app.get(job).attempts == 1 for job in ids)


def test_a_drain_releases_claimed_jobs_that_wait_for_a_slot(
    apps: Apps, gate: Gate, joined: list[Attempt], monkeypatch: pytest.MonkeyPatch
):
    """J7.6: at once, and no attempt spent; what runs may end."""
    monkeypatch.setattr(room, "CLAIM_AHEAD", 1e6)
    monkeypatch.setattr(room, "WINDOW", 1e6)  # its pace is kept, however long the next call takes
    monkeypatch.setattr(slots, "RELEASE_AFTER", 600.0)
    app = apps()
    app.job(quick_or_held)
    with app.worker(concurrency=SLOTS) as worker:
        ids = stuck_behind(app, gate)
        until(lambda: all(app.get(job).status is JobStatus.RUNNING for job in ids))
        opener = gate.open_once_draining(worker, lambda: "released" in outcomes_of(app, ids[-1]))
    opener.join()
    statuses = [app.get(job).status for job in ids]
    assert sorted(set(statuses)) == [JobStatus.PENDING, JobStatus.SUCCEEDED]
    assert statuses.count(JobStatus.SUCCEEDED) >= SLOTS
    assert {outcome for job in ids for outcome in outcomes_of(app, job)} <= {"succeeded", "released"}
    assert joined


def test_a_claimed_job_that_is_canceled_before_its_slot_never_runs(
    apps: Apps, gate: Gate, joined: list[Attempt], monkeypatch: pytest.MonkeyPatch
):
    """J2.3: like any job that waits."""
    monkeypatch.setattr(slots, "RELEASE_AFTER", 60.0)
    app = apps()
    app.job(quick_or_held)
    with app.worker(concurrency=SLOTS) as worker:
        ids = stuck_behind(app, gate)
        node = worker.node
        assert node is not None
        until(lambda: node.slots.running == SLOTS)
        assert all(app.cancel(job) for job in ids)
        until(lambda: len(node.slots.attempts()) == SLOTS)
        gate.open()
    assert {app.get(job).status for job in ids} == {JobStatus.CANCELED}
    assert joined


def test_start_events_are_published_when_attempts_start(app: Windlass, joined: list[Attempt]):
    """J5.8: so nothing is made ready before."""
    received: list[JobStarted] = []
    app.on(JobStarted)(received.append)
    job = app.job(quick)
    with app.worker(concurrency=SLOTS):
        for handle in app.enqueue_many([job.bind(0.001) for _ in range(QUICK)]):
            assert handle.join(timeout=LONG) is JobStatus.SUCCEEDED
        until(lambda: len(received) == QUICK)
    assert joined == []


def test_a_single_claimed_job_that_waits_too_long_is_released_too(apps: Apps, gate: Gate, joined: list[Attempt]):
    """J3.3: although no other claim waits behind it, and no slot becomes free."""
    app = apps()
    job = app.job(quick_or_held)
    with app.worker(concurrency=16):
        for _ in range(60):  # never more than there are slots, so that nothing waits
            for handle in app.enqueue_many([job.bind(gate.name) for _ in range(8)]):
                assert handle.result(timeout=LONG) == "quick"
        armed.set()
        ids = [handle.id for handle in app.enqueue_many([job.bind(gate.name) for _ in range(17)])]
        until(lambda: sorted(app.get(job).status for job in ids) == [JobStatus.PENDING] + [JobStatus.RUNNING] * 16)
        gate.open()
        assert all(app.handle(job).join(timeout=LONG) is JobStatus.SUCCEEDED for job in ids)
