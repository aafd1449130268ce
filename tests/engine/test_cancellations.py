"""A cancel reaches the job wherever it runs."""

import asyncio
from pathlib import Path

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, until
from tests.engine.remote_worker import remote_worker
from windlass import JobStatus, NodeSettings, Settings, Windlass


def test_a_running_coroutine_is_cancelled(app: Windlass, gate: Gate):
    """J2.2: its slot is free again, and whatever it returns, the job stays CANCELED."""
    handle = app.job(jobs.ahold).enqueue(gate.name)
    with app.worker(concurrency=1):
        gate.wait_entered()
        assert handle.cancel()
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
    job = app.get(handle.id)
    assert (job.status, job.reason, job.attempts) == (JobStatus.CANCELED, "canceled", 0)
    (attempt,) = app.history(handle.id)
    assert (attempt.outcome, attempt.number, attempt.node) == ("canceled", 1, job.node)


def test_a_thread_sees_the_cancel_and_ends_at_its_next_check(app: Windlass, gate: Gate):
    """J2.2: `ctx.canceled` and `ctx.check()`; no exception is thrown into it from outside."""
    handle = app.job(jobs.check_until_cancelled).enqueue(gate.name)
    with app.worker():
        gate.wait_entered()
        assert handle.cancel()
        until(lambda: jobs.seen)
    assert jobs.seen == ["saw it"]
    assert app.get(handle.id).status is JobStatus.CANCELED


def test_the_result_of_a_canceled_thread_is_ignored(app: Windlass, gate: Gate):
    """J2.2: a body that does not look goes on to its end; its result is dropped."""
    handle = app.job(jobs.hold).enqueue(gate.name)
    with app.worker():
        gate.wait_entered()
        assert handle.cancel()
        gate.open()
    job = app.get(handle.id)
    assert (job.status, job.result) == (JobStatus.CANCELED, None)


def test_a_claimed_job_that_waits_for_a_slot_is_forgotten(app: Windlass, gate: Gate):
    """J2.2: RUNNING in the store, not begun here: it never begins."""
    hold, note = app.job(jobs.hold), app.job(jobs.note)
    with app.worker(concurrency=1):
        first = hold.enqueue(gate.name)
        gate.wait_entered()
        second = note.enqueue("never")
        assert second.cancel()
        gate.open()
        assert first.result(timeout=LONG) == "let go"
        assert note.enqueue("after").result(timeout=LONG) == "after"
    assert jobs.seen == ["after"]


def test_a_cancel_in_another_process_is_noticed_at_once(app: Windlass, apps: Apps, tmp_path: Path):
    """J2.2: by a wakeup (PostgreSQL notifies, SQLite's file is watched); heartbeats are far too rare to explain it."""
    mark = tmp_path / "mark"
    with remote_worker(apps.url):
        handle = app.job(jobs.leave_a_mark_at_the_end).enqueue(str(mark))
        until(lambda: handle.status() is JobStatus.RUNNING)
        assert handle.cancel()
        assert until(mark.exists)


def test_a_cancel_without_a_wakeup_is_found_by_the_next_check(migrated_postgres: str, gate: Gate):
    """J2.2: else within a heartbeat: what runs here is compared with the store. A pooler delivers nothing."""
    settings = Settings(node=NodeSettings(heartbeat_interval=0.5))
    worker, other = (Windlass(f"{migrated_postgres}?pooled=true", settings=settings) for _ in range(2))
    handle = worker.job(jobs.ahold).enqueue(gate.name)
    with worker.worker(concurrency=1):
        gate.wait_entered()
        assert other.cancel(handle.id)
        assert worker.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
    worker.close()
    other.close()


SLOTS = 5


def test_cancels_that_meet_a_job_at_its_first_step_free_its_slot(app: Windlass):
    """J2.2: a task that is cancelled before it began would never end by itself."""
    note = app.job(jobs.anote).using(tags=["t"])
    with app.worker(concurrency=SLOTS) as worker:
        for _ in range(8):
            app.enqueue_many([note.bind("x") for _ in range(200)])
            app.cancel_by_tag("t")
        assert app.job(jobs.aadd).enqueue(1, 2).result(timeout=LONG) == 3
        node = worker.node
        assert node is not None
        until(lambda: node.slots.running == 0)


def test_a_claimed_job_that_was_canceled_during_the_claim_does_not_start(app: Windlass, gate: Gate):
    """J2.2: the notification of the cancel may arrive before the answer to the claim."""
    note, hold = app.job(jobs.note), app.job(jobs.hold)
    with app.worker(concurrency=1) as worker:
        first = hold.enqueue(gate.name)
        gate.wait_entered()
        second = note.enqueue("never")
        node = worker.node
        assert node is not None
        node.wakeups.canceled([str(second.id)])  # notified before it is claimed
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), node.wakeups._loop).result(LONG)
        gate.open()
        assert first.result(timeout=LONG) == "let go"
        until(lambda: second.status() is JobStatus.RUNNING)
        assert note.enqueue("after").result(timeout=LONG) == "after"
        assert second.cancel()
    assert jobs.seen == ["after"]
