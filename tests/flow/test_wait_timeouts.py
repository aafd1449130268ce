"""A worker ends waits whose signal does not come, and wakes up for jobs whose signal does."""

from tests.engine.apps import Apps, until
from tests.flow.test_signals import seen
from windlass import JobStatus, Windlass, approved
from windlass.flow.wait_timeouts import LONGEST_PAUSE


def test_worker_fails_a_job_whose_signal_does_not_come(apps: Apps):
    """J8.5: without any request."""
    app = apps()
    handle = app.job(seen).bind().await_signal("never", timeout=0.05).enqueue()
    with app.worker(concurrency=1):
        assert handle.join(timeout=90) is JobStatus.FAILED
    assert app.get(handle.id).reason == "signal_timeout"


def test_worker_runs_a_signaled_job_at_once(apps: Apps):
    """J8.5: the sender wakes it; waiting jobs take no slot."""
    app = apps()
    job = app.job(seen)
    waiting = app.enqueue_many([job.bind().await_signal("k") for _ in range(3)])
    with app.worker(concurrency=1):
        assert job.enqueue().result(timeout=90) == []
        assert app.signal("k", approved()) == len(waiting)
        assert [handle.result(timeout=90)[1] for handle in waiting] == ["approved"] * len(waiting)


def test_signal_reaches_a_body_in_a_process(apps: Apps):
    """J4.4, J4.2: `ctx.signal` there, too."""
    app = apps()
    handle = app.job(seen).using(executor="process").bind().await_signal("k").enqueue()
    app.signal("k", approved({"by": "ops"}))
    with app.worker(concurrency=1):
        assert handle.result(timeout=90)[1:3] == ["approved", {"by": "ops"}]


def test_many_overdue_waits_are_ended_in_parts(apps: Apps):
    """J8.5: more than one transaction ends."""
    app = apps()
    job = app.job(seen)
    app.enqueue_many([job.bind().await_signal("never", timeout=0.001) for _ in range(600)])
    with app.worker(concurrency=50):
        until(lambda: not _waiting(app), timeout=120)


def _waiting(app: Windlass) -> bool:
    statuses = {job.status for job in app.find(limit=1000)}
    return statuses != {JobStatus.FAILED}


def test_deadlines_are_looked_at_every_few_seconds():
    """J8.5: a job that another process enqueues may have an earlier deadline than all others."""
    assert LONGEST_PAUSE == 5.0
