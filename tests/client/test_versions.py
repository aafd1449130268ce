"""`Job.version` grows with every change of state, over the whole life of a job, and with nothing else."""

from collections.abc import Callable
from typing import Any

from tests.engine import jobs
from tests.engine.apps import LONG, Gate, settled, until
from windlass import Backoff, JobContext, JobHandle, JobStatus, Windlass
from windlass.stores.plans import archive


def fail_after_half(word: str) -> None:
    JobContext.current().progress(1, 2, "half of it")
    raise ValueError(word)


class Witness:
    """Looks at a job after every move."""

    def __init__(self, app: Windlass, handle: JobHandle[Any]) -> None:
        self._app, self._id = app, handle.id
        self.seen = [app.get(handle.id).version]

    def after(self, moved: object, status: JobStatus) -> None:
        """It was moved to this state, and its version has grown."""
        assert moved
        job = self._app.get(self._id)
        assert job.status is status
        assert job.version > self.seen[-1], (status, self.seen)
        self.seen.append(job.version)

    def unchanged(self) -> None:
        """It is as it was."""
        assert self._app.get(self._id).version == self.seen[-1]


def run_to_its_end(app: Windlass, handle: JobHandle[Any]) -> bool:
    with app.worker():
        handle.join(timeout=LONG)
    return True


def test_a_version_grows_with_every_change_of_state(app: Windlass):
    """J2.5: pause, resume, claim, requeue, end; pause and resume of the dead letter, retry from the archive, cancel."""
    fail = app.job(max_retries=1, backoff=Backoff.fixed(0.01))(fail_after_half)
    handle = fail.enqueue("x")
    witness = Witness(app, handle)
    for _ in range(2):
        witness.after(handle.pause(), JobStatus.PAUSED)
        witness.after(handle.resume(), JobStatus.PENDING)
    assert handle.pause()
    assert handle.pause()  # again: as asked for, and nothing new
    witness.after(True, JobStatus.PAUSED)
    witness.after(handle.resume(), JobStatus.PENDING)
    witness.after(run_to_its_end(app, handle), JobStatus.FAILED)
    claims, requeues = 2, 1
    assert witness.seen[-1] - witness.seen[-2] >= claims + requeues + 1, "each of them counts"
    witness.after(handle.pause(), JobStatus.PAUSED)
    witness.after(handle.resume(), JobStatus.FAILED)
    assert app.get(handle.id).progress is not None, "what its last attempt said of it is still there"
    assert app.database.run(archive.move, [str(handle.id)]).jobs == 1
    witness.unchanged()
    witness.after(handle.retry(), JobStatus.PENDING)
    witness.after(run_to_its_end(app, handle), JobStatus.FAILED)
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["retried", "failed", "retried", "failed"]
    witness.after(handle.pause(), JobStatus.PAUSED)
    witness.after(handle.cancel(), JobStatus.CANCELED)
    assert not handle.cancel()
    assert not handle.retry()
    witness.unchanged()
    assert app.database.run(archive.move, [str(handle.id)]).jobs == 1
    witness.unchanged()


def test_a_version_grows_while_a_job_runs_and_when_it_ends(app: Windlass, gate: Gate):
    """J2.5: a claim, a cancel of what runs, of what waits and of what is paused, a success, and being superseded."""
    hold, note = app.job(jobs.hold), app.job(jobs.note)
    running = hold.enqueue(gate.name)
    witness = Witness(app, running)
    with app.worker():
        gate.wait_entered()
        witness.after(True, JobStatus.RUNNING)
        witness.after(running.cancel(), JobStatus.CANCELED)
        gate.open()
    witness.unchanged()
    moves: dict[JobStatus, Callable[[JobHandle[Any]], object]] = {
        JobStatus.SUCCEEDED: lambda handle: run_to_its_end(app, handle),
        JobStatus.CANCELED: lambda handle: handle.cancel(),
    }
    for status, move in moves.items():
        for paused in (False, True):
            handle = note.enqueue("x")
            witness = Witness(app, handle)
            if paused:
                witness.after(handle.pause(), JobStatus.PAUSED)
            if status is JobStatus.SUCCEEDED and paused:
                witness.after(handle.resume(), JobStatus.PENDING)
            witness.after(move(handle), status)
    old = note.using(business_key="order:7", delay=60).enqueue("x")
    witness = Witness(app, old)
    note.using(business_key="order:7", on_conflict="replace", delay=60).enqueue("y")
    witness.after(True, JobStatus.CANCELED)


def test_the_history_of_a_canceled_attempt_has_its_start(app: Windlass, gate: Gate):
    """J2.5: a cancel knows only when the job was claimed, and counts from then. It is not counted as an attempt."""
    handle = app.job(jobs.hold).enqueue(gate.name)
    with app.worker():
        gate.wait_entered()
        picked_at = settled_claim(app, handle)
        assert handle.cancel()
        gate.open()
    (attempt,) = app.history(handle.id)
    assert (attempt.outcome, attempt.picked_at, attempt.started_at) == ("canceled", picked_at, picked_at)
    assert attempt.run_ms == int((attempt.ended_at - picked_at).total_seconds() * 1000 + 1e-6)
    assert settled(app, handle.id).attempts == 0


def settled_claim(app: Windlass, handle: JobHandle[Any]) -> Any:
    until(lambda: app.get(handle.id).picked_at is not None)
    return app.get(handle.id).picked_at
