"""What is known of a job's attempts: history, counts, times, and the latest error."""

from datetime import timedelta

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, settled
from windlass import Backoff, JobNotFoundError, JobStatus, Windlass
from windlass.domain.identity import new_job_id
from windlass.testing import drain


def test_every_attempt_stores_a_row_of_history(app: Windlass):
    """J2.5: attempt, node, start, end, outcome, error class, sanitised message, traceback tail."""
    job = app.job(max_retries=1)(jobs.fail_at_first)
    with app.worker() as worker:
        assert worker.node is not None
        node = worker.node.id
        handle = job.enqueue("login failed: password=hunter2")
        handle.join(timeout=LONG)
    first, second = app.history(handle.id)
    assert (first.number, first.outcome, first.node) == (1, "retried", node)
    assert first.error_class == "ValueError"
    assert first.error == "ValueError: login failed: password=[REDACTED]"
    assert first.traceback is not None
    assert "fail_at_first" in first.traceback
    assert "hunter2" not in first.traceback
    assert (second.number, second.outcome, second.node) == (2, "succeeded", node)
    assert (second.error_class, second.error, second.traceback) == (None, None, None)
    for attempt in (first, second):
        assert attempt.picked_at is not None
        assert attempt.started_at is not None
        assert attempt.picked_at <= attempt.started_at <= attempt.ended_at
    assert second.picked_at is not None
    assert first.ended_at <= second.picked_at


def test_the_latest_error_is_visible_while_the_job_waits_for_its_retry(app: Windlass):
    """J2.5: PENDING again, one attempt counted, the error there to be seen."""
    fail = app.job(max_retries=2, backoff=Backoff.fixed(3600))(jobs.fail)
    handle = fail.enqueue("the bank is closed")
    drain(app)
    job = app.get(handle.id)
    assert (job.status, job.attempts) == (JobStatus.PENDING, 1)
    assert (job.error, job.error_class) == ("ValueError: the bank is closed", "ValueError")
    assert (job.node, job.picked_at, job.reason, job.finished_at) == (None, None, None, None)
    assert job.max_retries == 2


def test_the_error_of_the_last_attempt_is_visible_while_the_next_one_runs(app: Windlass, gate: Gate):
    """J2.5: an error stays until the job succeeds."""
    flaky = app.job(max_retries=1)(jobs.fail_then_hold)
    with app.worker():
        handle = flaky.enqueue(gate.name)
        gate.wait_entered()
        running = app.get(handle.id)
        gate.open()
        handle.join(timeout=LONG)
    assert (running.status, running.attempts, running.error) == (JobStatus.RUNNING, 1, "ValueError: not yet")
    assert running.node is not None


def test_success_clears_the_error_and_history_keeps_it(app: Windlass):
    """J2.5: what is over is not shown as a problem of the job."""
    job = app.job(max_retries=1)(jobs.fail_at_first)
    with app.worker():
        done = settled(app, job.enqueue("once").id)
    assert (done.status, done.attempts, done.result) == (JobStatus.SUCCEEDED, 2, 2)
    assert (done.error, done.error_class, done.reason) == (None, None, None)
    assert app.history(done.id)[0].error == "ValueError: once"


def test_a_success_at_the_first_attempt_counts_one_attempt(app: Windlass):
    """J2.5: attempts counts starts that counted; none before the first."""
    add = app.job(jobs.add)
    handle = add.enqueue(1, 2)
    assert app.get(handle.id).attempts == 0
    assert app.history(handle.id) == []
    with app.worker():
        assert settled(app, handle.id).attempts == 1


def test_a_dead_job_shows_every_attempt_and_the_last_error(app: Windlass):
    """J2.5: three starts, three rows, the last one failed."""
    fail = app.job(max_retries=2)(jobs.fail)
    handle = fail.enqueue("broken")
    drain(app)
    job = app.get(handle.id)
    assert (job.status, job.attempts, job.error, job.reason) == (
        JobStatus.FAILED,
        3,
        "ValueError: broken",
        "retry_exhausted",
    )
    outcomes = [(attempt.number, attempt.outcome) for attempt in app.history(job.id)]
    assert outcomes == [(1, "retried"), (2, "retried"), (3, "failed")]


@pytest.mark.parametrize("delay", [0, 0.2])
def test_waiting_and_running_times_are_those_of_the_rows(app: Windlass, delay: float):
    """J2.5: wait_ms = start - max(due, created); run_ms is the attempt's own time."""
    add = app.job(jobs.add)
    handle = add.using(delay=delay).enqueue(1, 2)
    with app.worker():
        job = settled(app, handle.id)
    assert job.due_at is not None
    assert job.started_at is not None
    assert job.finished_at is not None
    assert timedelta(seconds=delay) <= job.due_at - job.created_at < timedelta(seconds=delay + 1)
    since = max(job.due_at, job.created_at)
    assert job.wait_ms == (job.started_at - since) // timedelta(milliseconds=1)
    assert job.run_ms == (job.finished_at - job.started_at) // timedelta(milliseconds=1)
    (attempt,) = app.history(job.id)
    assert (attempt.wait_ms, attempt.run_ms) == (job.wait_ms, job.run_ms)


def test_a_due_time_in_the_past_adds_nothing_to_the_waiting_time(app: Windlass):
    """J2.5: wait_ms = start - max(due, created): a job did not wait before it was created."""
    handle = app.job(jobs.add).using(run_at=app.parts.clock.now() - timedelta(hours=1)).enqueue(1, 2)
    with app.worker():
        job = settled(app, handle.id)
    assert job.due_at is not None
    assert job.started_at is not None
    assert job.due_at < job.created_at
    assert job.wait_ms == (job.started_at - job.created_at) // timedelta(milliseconds=1)


def test_a_job_shows_everything_it_was_enqueued_with(app: Windlass):
    """J2.5, J1.1: what `app.get` shows of a job that has not run."""
    add = app.job(max_retries=3)(jobs.add)
    handle = add.using(
        queue="sums", priority=3, tags=["A"], params={"x": 1}, correlation_id="c", idempotency_key="i", business_key="b"
    ).enqueue(1, b=2)
    job = app.get(handle.id)
    assert (job.id, job.target, job.queue, job.status) == (handle.id, add.target, "sums", JobStatus.PENDING)
    assert (job.args, dict(job.kwargs), job.priority, job.max_retries) == ((1,), {"b": 2}, 3, 3)
    assert (job.tags, dict(job.params), job.correlation_id) == (("a",), {"x": 1}, "c")
    assert (job.idempotency_key, job.business_key) == ("i", "b")
    assert (job.crash_count, job.version, job.superseded_by, job.parent_id) == (0, 0, None, None)


async def test_unknown_ids_are_not_found_by_any_verb(app: Windlass):
    """J2.5: `get`, `history` and handles raise JobNotFoundError, naming the id."""
    stranger = new_job_id()
    for read in (app.get, app.history):
        with pytest.raises(JobNotFoundError, match=str(stranger)):
            read(stranger)
    for aread in (app.aget, app.ahistory):
        with pytest.raises(JobNotFoundError, match=str(stranger)):
            await aread(str(stranger))
    with pytest.raises(JobNotFoundError, match=str(stranger)):
        app.handle(stranger).status()


async def test_the_async_twins_read_the_same(app: Windlass, apps: Apps):
    """J2.5: `aget` and `ahistory` are `get` and `history`."""
    job = app.job(max_retries=1)(jobs.fail_at_first)
    async with app.worker():
        handle = await job.aenqueue("once")
        await handle.ajoin(timeout=LONG)
        assert await app.aget(handle.id) == apps().get(handle.id)
        assert await app.ahistory(handle.id) == apps().history(str(handle.id))
