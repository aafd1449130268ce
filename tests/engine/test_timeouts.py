"""Timeouts: coroutines are cancelled, threads interrupted as far as CPython allows, late results fenced off."""

import logging

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, settled, threads_named, until
from windlass import Job, JobsSettings, JobStatus, JobTimedOut, Settings, Windlass
from windlass.engine import timeouts

TIMEOUT = 0.2


def failed_by_timeout(job: Job) -> bool:
    return (job.status, job.error_class, job.reason) == (JobStatus.FAILED, "JobTimeoutError", "retry_exhausted")


def about(caplog: pytest.LogCaptureFixture, text: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if text in record.getMessage()]


def test_a_coroutine_that_runs_over_is_cancelled_and_may_clean_up(app: Windlass):
    """J4.5: the timeout flows through the failure path as JobTimeoutError."""
    slow = app.job(timeout=TIMEOUT)(jobs.clean_up_when_cancelled)
    with app.worker():
        job = settled(app, slow.enqueue().id)
    assert failed_by_timeout(job)
    assert job.error == "JobTimeoutError: the job ran longer than its timeout of 0.2 s"
    assert job.attempts == 1
    assert jobs.seen == ["cleaned up"]


def test_a_pure_python_loop_on_a_thread_is_interrupted(app: Windlass):
    """J4.5: the thread ends, and the node goes on."""
    endless, add = app.job(timeout=TIMEOUT)(jobs.loop_for_ever), app.job(jobs.add)
    with app.worker(concurrency=1):
        assert failed_by_timeout(settled(app, endless.enqueue().id))
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
        until(lambda: len(list(threads_named("windlass-job"))) == 1)


def test_the_late_result_of_a_thread_that_cannot_be_interrupted_is_fenced_off(app: Windlass, gate: Gate):
    """J4.5: a body in C code goes on by itself; its slot is free at once, its result is ignored."""
    stuck, add = app.job(timeout=TIMEOUT)(jobs.sleep_then_return), app.job(jobs.add)
    with app.worker(concurrency=1):
        handle = stuck.enqueue(gate.name)
        assert failed_by_timeout(settled(app, handle.id))
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
        gate.open()
        until(lambda: jobs.seen == ["late"])
        assert add.enqueue(3, 4).result(timeout=LONG) == 7
    job = app.get(handle.id)
    assert failed_by_timeout(job)
    assert job.result is None
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["failed"]


def test_a_coroutine_on_a_thread_is_over_at_its_timeout_too(app: Windlass):
    """J4.5: whatever the executor."""
    slow = app.job(timeout=TIMEOUT, executor="thread")(jobs.time_out_once)
    with app.worker():
        assert failed_by_timeout(settled(app, slow.enqueue().id))


def test_a_coroutine_that_ignores_its_cancellation_is_abandoned(
    app: Windlass, gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """J4.5: after a grace its verdict is passed without it, its slot is free, its late result is ignored."""
    monkeypatch.setattr(timeouts, "GRACE", 0.1)
    stubborn, add = app.job(timeout=TIMEOUT)(jobs.swallow_cancellation), app.job(jobs.add)
    with app.worker(concurrency=1):
        handle = stubborn.enqueue(gate.name)
        assert failed_by_timeout(settled(app, handle.id))
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
        gate.open()
        until(lambda: jobs.seen == ["cancelled", "late"])
    assert failed_by_timeout(app.get(handle.id))
    assert len(about(caplog, "does not end after its timeout")) == 1


def test_a_coroutine_that_ignores_its_cancellation_and_returns_has_timed_out_too(app: Windlass, gate: Gate):
    """J4.5: a result that comes after the timeout is none."""
    gate.open()
    stubborn = app.job(timeout=TIMEOUT)(jobs.return_after_cancellation)
    with app.worker():
        job = settled(app, stubborn.enqueue().id)
    assert failed_by_timeout(job)
    assert job.result is None


def test_there_is_one_warning_at_80_percent_and_one_at_the_timeout(
    app: Windlass, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """J4.5: both name the job; neither comes twice. The first is early here: a stall of the loop must not skip it."""
    assert timeouts.WARN_AT == 0.8
    monkeypatch.setattr(timeouts, "WARN_AT", 0.1)
    slow = app.job(timeout=2)(jobs.sleep_long)
    with app.worker():
        handle = slow.enqueue()
        settled(app, handle.id)
    (soft,), (hard,) = about(caplog, "80 %"), about(caplog, "exceeded its timeout")
    assert soft.levelno == hard.levelno == logging.WARNING
    assert soft.created < hard.created
    assert all(str(handle.id) in record.getMessage() for record in (soft, hard))
    assert len(about(caplog, str(handle.id))) == 3, "those two, and the failure itself"


def test_a_job_within_its_timeout_is_not_warned_about(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J4.5: nothing is logged of a quick job."""
    add = app.job(timeout=60)(jobs.add)
    with app.worker():
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_timeout_is_retried_like_any_failure(app: Windlass):
    """J4.5, J5.1: max_retries counts timeouts, and the error is seen in the history."""
    slow = app.job(timeout=2, max_retries=1)(jobs.time_out_once)
    events: list[JobTimedOut] = []
    app.on(JobTimedOut)(events.append)
    with app.worker():
        handle = slow.enqueue()
        assert handle.result(timeout=LONG) == 2
    first, second = app.history(handle.id)
    assert (first.outcome, first.error_class, second.outcome) == ("retried", "JobTimeoutError", "succeeded")
    assert [(event.job_id, event.timeout.total_seconds()) for event in events] == [(handle.id, 2)]


def test_the_context_shows_that_the_job_timed_out(app: Windlass):
    """J4.4, J4.5: `ctx.check()` leaves the body."""
    polite = app.job(timeout=TIMEOUT)(jobs.loop_until_asked_to_stop)
    with app.worker():
        assert failed_by_timeout(settled(app, polite.enqueue().id))


def test_the_setting_applies_to_jobs_without_a_timeout_and_none_means_none(apps: Apps, gate: Gate):
    """J4.5: jobs.timeout is the default of the node that runs the job; `timeout=None` overrules it."""
    app = apps(settings=Settings(jobs=JobsSettings(timeout=TIMEOUT)))
    slow, hold, ahold = app.job(jobs.sleep_long), app.job(timeout=None)(jobs.hold), app.job(timeout=None)(jobs.ahold)
    with app.worker():
        unlimited = [hold.enqueue(gate.name), ahold.enqueue(gate.name)]
        gate.wait_entered()
        assert failed_by_timeout(settled(app, slow.enqueue().id))
        gate.open()
        assert [handle.result(timeout=LONG) for handle in unlimited] == ["let go"] * 2
    assert Settings().jobs.timeout == 1800


def test_many_timeouts_at_once_all_fire(app: Windlass):
    """J4.5: one timer serves all running jobs."""
    slow = app.job(timeout=TIMEOUT)(jobs.sleep_long)
    with app.worker(concurrency=60):
        handles = app.enqueue_many([slow.bind() for _ in range(60)])
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.FAILED}


@pytest.mark.slow
@pytest.mark.parametrize("long", [30.0, 0.01], ids=["timed exactly", "looked through"])
def test_short_and_long_timeouts_are_each_logged_once(
    app: Windlass, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, long: float
):
    """J4.5: however a timeout is kept, there is one warning, one end, and time to clean up after it.

    A timeout of seconds, and an early warning: a stall of the loop must not skip it.
    """
    monkeypatch.setattr(timeouts, "WARN_AT", 0.1)
    monkeypatch.setattr(timeouts, "LONG", long)
    monkeypatch.setattr(timeouts, "ROUND", 0.001)
    slow = app.job(timeout=3)(jobs.clean_up_when_cancelled)
    with app.worker():
        handles = [slow.enqueue() for _ in range(5)]
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.FAILED}
    assert jobs.seen == ["cleaned up"] * 5
    assert [len(about(caplog, text)) for text in ("80 %", "exceeded its timeout", "does not end")] == [5, 5, 0]
