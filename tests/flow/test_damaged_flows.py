"""Damaged rows of flows and waits: each stays alone with its damage."""

import pytest

from tests.engine.apps import LONG, Apps, until
from tests.engine.damage import execute
from tests.flow import branch_bodies
from tests.flow.branch_bodies import BranchJobs
from tests.flow.flow_bodies import all_jobs
from tests.flow.test_signals import seen
from windlass import RESULT, JobStatus, NodeSettings, Settings
from windlass.domain.identity import FIRST_ID
from windlass.runtime.failpoints import armed
from windlass.stores.plans import flow_checks, signal_waits
from windlass.testing import drain
from windlass.testing.drain import EndlessDrainError

ENDED = {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELED}


def test_invalid_way_to_follow_does_not_block_the_outcome(apps: Apps):
    """J7.9: the outcome is written, and the checks find the followers."""
    app = apps(settings=Settings(node=NodeSettings(sweep_interval=0.05)))
    jobs = BranchJobs(app)
    handle = jobs.double.bind(3).then(jobs.note.bind("x")).enqueue()
    options = '{"flow":{"leads":[99]}}'
    execute(apps.url, "UPDATE windlass_job SET options = ? WHERE id = ?", options, str(handle.id))
    with app.worker(concurrency=1):
        assert jobs.note.enqueue("other").result(timeout=LONG) == "other"
        assert handle.result(timeout=LONG) == 6
        until(lambda: handle.graph().ended)


@pytest.mark.parametrize("column", ["job.correlation_id", "hot.target", "hot.queue"])
def test_text_of_a_follower_that_is_not_utf_8_does_not_keep_its_parent_running(sqlite_url: str, column: str):
    """J7.9: the driver of SQLite refuses such a text; the parent's failure is written, and cancels the follower."""
    apps = Apps(sqlite_url)
    app = apps()
    jobs = BranchJobs(app)
    head = jobs.note.bind("fails").then(jobs.note.bind("behind")).enqueue()
    execute(apps.url, "UPDATE windlass_job SET args = 'no JSON' WHERE id = ?", str(head.id))
    (follower,) = (job.id for job in app.find() if job.id != head.id)
    table, name = column.split(".")
    execute(apps.url, f"UPDATE windlass_{table} SET {name} = CAST(x'ff41' AS TEXT) WHERE id = ?", str(follower))
    with app.worker(concurrency=1):
        assert head.join(timeout=LONG) is JobStatus.FAILED
        assert app.handle(follower).join(timeout=LONG) is JobStatus.CANCELED
    apps.close()


def test_follower_of_a_parent_without_a_proper_end_holds_up_no_other_claim(apps: Apps):
    """J7.9: also one that takes its result, and one that is guarded; the parent counts as failed."""
    app = apps(settings=Settings(node=NodeSettings(sweep_interval=0.05)))
    jobs = BranchJobs(app)
    taking = jobs.double.bind(1).then(jobs.note.bind("taking", RESULT)).enqueue()
    guarded = jobs.double.bind(2).when_result(branch_bodies.yes, jobs.note.bind("guarded")).enqueue()
    with armed("judge.before=raise@1"), pytest.raises(EndlessDrainError):
        drain(app, limit=2)
    for handle in (taking, guarded):
        execute(apps.url, "UPDATE windlass_done SET status = 'ENDED' WHERE id = ?", str(handle.id))
    with app.worker(concurrency=1):
        other = jobs.double.bind(3).then(jobs.double).enqueue()
        until(lambda: other.graph().ended)
        until(lambda: {job.status for job in all_jobs(app) if job.args[0] in ("taking", "guarded")} <= ENDED)


def test_check_of_a_parent_without_a_proper_end_cancels_its_followers(apps: Apps):
    """J7.9, J7.5: and goes on with the others."""
    app = apps()
    jobs = BranchJobs(app)
    handle = jobs.double.bind(1).then(jobs.note.bind("x")).enqueue()
    execute(
        apps.url,
        "INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, finished_at) "
        "SELECT id, queue, target, 'ENDED', 1, 1, 0, 1 FROM windlass_hot WHERE id = ?",
        str(handle.id),
    )
    execute(apps.url, "DELETE FROM windlass_hot WHERE id = ?", str(handle.id))
    assert app.database.run(flow_checks.release_missed, FIRST_ID).found == 1
    (follower,) = [job for job in all_jobs(app) if job.args[0] == "x"]
    assert (follower.status, follower.reason) == (JobStatus.CANCELED, "upstream_failed")


def test_invalid_deadline_does_not_fail_the_search_for_overdue_waits(apps: Apps):
    """J7.9: SQLite stores what it is given."""
    if not apps.url.startswith("sqlite"):
        pytest.skip("PostgreSQL refuses such a value")
    app = apps()
    handle = app.job(seen).bind().await_signal("k", timeout=1).enqueue()
    execute(apps.url, "UPDATE windlass_hot SET due = 'soon' WHERE id = ?", str(handle.id))
    assert app.database.read(signal_waits.next_deadline) is None
    assert app.signal("k") == 1
    with app.worker(concurrency=1):
        assert handle.join(timeout=LONG) is JobStatus.SUCCEEDED
