"""Damaged rows of flows and waits: each stays alone with its damage."""

import pytest

from tests.engine.apps import LONG, Apps, until
from tests.engine.damage import execute
from tests.flow.branch_bodies import BranchJobs
from tests.flow.test_signals import seen
from windlass import JobStatus, NodeSettings, Settings
from windlass.stores.plans import signal_waits


def test_way_to_follow_that_does_not_exist_holds_up_no_outcome(apps: Apps):
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


def test_deadline_that_is_no_number_fails_no_look_at_the_deadlines(apps: Apps):
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
