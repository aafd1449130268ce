"""Guarded followers that await signals, or are stopped while their guards are judged."""

from collections.abc import Iterator

import pytest

from tests.engine.apps import LONG, Apps, until
from tests.engine.damage import execute
from tests.flow import branch_bodies
from tests.flow.branch_bodies import ASKED, BranchJobs
from tests.flow.flow_bodies import BROKEN, RAN, all_jobs
from windlass import Job, JobStatus, Windlass
from windlass.domain.clock import VirtualClock
from windlass.runtime.failpoints import armed
from windlass.testing import drain
from windlass.testing.drain import EndlessDrainError


@pytest.fixture(autouse=True)
def _nothing_asked() -> Iterator[None]:
    ASKED.clear()
    branch_bodies.IN_PREDICATE.clear()
    branch_bodies.GO_ON.clear()
    yield
    branch_bodies.GO_ON.set()


def found(app: Windlass, name: str) -> Job:
    return next(job for job in all_jobs(app) if job.args and job.args[0] == name)


def state(app: Windlass, name: str) -> tuple[JobStatus, str | None]:
    job = found(app, name)
    return job.status, job.reason


def _end_head_unjudged(app: Windlass) -> None:
    """Run the head; its branches cannot be judged, which is what a failpoint does to it."""
    with armed("judge.before=raise@1"), pytest.raises(EndlessDrainError):
        drain(app, limit=1)


def test_timeout_of_a_guarded_waiter_does_not_pass_its_guard(app: Windlass, clock: VirtualClock):
    """J8.2, J8.5: what is not chosen neither fails by its timeout nor enters its body when its signal comes."""
    jobs = BranchJobs(app)
    call = jobs.note.using(max_retries=2).bind("x").await_signal("k", timeout=5)
    jobs.double.bind(30).when_result(branch_bodies.is_small, call).then(jobs.note.bind("main")).enqueue()
    _end_head_unjudged(app)
    clock.advance(6)
    drain(app)
    assert (state(app, "x"), ASKED) == ((JobStatus.CANCELED, "not_chosen"), ["small 60"])
    assert app.signal("k") == 0
    assert RAN == ["double 30", "main"]


def test_guarded_waiter_that_is_chosen_waits_again_and_runs(app: Windlass, clock: VirtualClock):
    """J8.2, J8.5: its guard is judged once, before its first attempt fails by its timeout."""
    jobs = BranchJobs(app)
    call = jobs.note.using(max_retries=2).bind("x").await_signal("k", timeout=5)
    jobs.double.bind(3).when_result(branch_bodies.is_small, call).then(jobs.note.bind("main")).enqueue()
    _end_head_unjudged(app)
    clock.advance(6)
    drain(app)
    assert (state(app, "x")[0], found(app, "x").attempts) == (JobStatus.WAITING, 1)
    assert app.signal("k") == 1
    drain(app)
    assert (RAN, ASKED) == (["double 3", "main", "x"], ["small 6"])


def test_cancel_while_a_guard_is_judged_keeps_the_body_from_being_entered(apps: Apps):
    """J2.2, J8.2."""
    app = apps()
    jobs = BranchJobs(app)
    jobs.double.bind(3).when_result(branch_bodies.waits, jobs.note.bind("x")).enqueue()
    with armed("judge.before=raise@1"), app.worker(concurrency=1) as worker:
        assert branch_bodies.IN_PREDICATE.wait(LONG)
        node = worker.node
        assert node is not None
        assert app.cancel(found(app, "x").id)
        until(lambda: node.slots.running == 0)
        branch_bodies.GO_ON.set()
        assert jobs.note.enqueue("other").result(timeout=LONG) == "other"
    assert RAN == ["double 3", "other"]


def test_guarded_follower_of_a_job_that_was_canceled_since_is_not_chosen(apps: Apps):
    """J8.1, J2.4: claimed while its parent was started over, it stays released; a cancel of that fires no branch."""
    app = apps()
    jobs = BranchJobs(app)
    BROKEN.add("a")
    handle = jobs.step.bind("a").when(branch_bodies.always, jobs.note.bind("x")).then(jobs.note.bind("main")).enqueue()
    _end_head_unjudged(app)
    follower = str(found(app, "x").id)
    execute(apps.url, "UPDATE windlass_hot SET status = 'RUNNING' WHERE id = ?", follower)
    assert handle.retry()
    execute(apps.url, "UPDATE windlass_hot SET status = 'PENDING' WHERE id = ?", follower)
    assert handle.cancel()
    drain(app)
    assert (state(app, "x"), RAN, ASKED) == ((JobStatus.CANCELED, "not_chosen"), ["a"], [])


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (branch_bodies.says_no_late, (JobStatus.CANCELED, "not_chosen")),
        (branch_bodies.says_yes_late, (JobStatus.FAILED, "retry_exhausted")),
    ],
)
def test_timeout_of_a_guarded_follower_begins_with_its_body(apps: Apps, predicate, expected):
    """J4.5, J8.2: a slow predicate is not cut off by it, and then taken for judged; a slow body is."""
    app = apps()
    jobs = BranchJobs(app)
    app.job(branch_bodies.hangs_as_job)
    call = app.bind(branch_bodies.hangs_as_job, "x").using(timeout=0.2, max_retries=1)
    jobs.double.bind(3).when_result(predicate, call).enqueue()
    with armed("judge.before=raise@1"), app.worker(concurrency=1):
        until(lambda: state(app, "x")[1] is not None)
    assert state(app, "x") == expected
    assert (["double 3", "x", "x"] if expected[0] is JobStatus.FAILED else ["double 3"]) == RAN
