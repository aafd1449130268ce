"""SIGKILL around the commit of an outcome: its callback is stored with it, or neither is."""

from collections.abc import Iterator

import pytest

from tests.crash.programs import callback_bodies as bodies
from tests.crash.programs.application import make_app
from tests.support.facts import one, statuses
from tests.support.programs import Programs
from tests.support.waiting import until
from windlass import JobHandle, JobStatus, Windlass

KILLED = -9
FOLLOWERS = "SELECT count(*) FROM windlass_job WHERE parent_id IS NOT NULL"


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = make_app(store_url, bodies.ALL)
    application.migrate()
    yield application
    application.close()


def killed(app: Windlass, programs: Programs, url: str, moment: str) -> JobHandle[int]:
    """Have a worker run a job with a callback, and die at that moment."""
    worker = programs.start("callback_worker", url, moment)
    assert worker.node
    handle = app.bind(bodies.work, 21).using(on_success=bodies.follow).enqueue()
    assert worker.exit_code() == KILLED
    return handle


def finished(app: Windlass, programs: Programs, url: str) -> None:
    """Another worker does what is left; nothing is left twice."""
    programs.start("callback_worker", url, "never")
    until(lambda: statuses(url) == {"SUCCEEDED": 2}, "the job and its callback to succeed", 30)
    assert programs.ran("followed") == ["42"]
    assert one(url, FOLLOWERS) == 1


def test_a_worker_killed_right_after_the_outcome_loses_no_callback(app: Windlass, store_url: str, programs: Programs):
    """J5.5, J4.3: there is no "committed but not yet enqueued": another worker runs it, once."""
    handle = killed(app, programs, store_url, "after")
    assert handle.status() is JobStatus.SUCCEEDED
    assert (one(store_url, FOLLOWERS), programs.ran("followed")) == (1, [])
    finished(app, programs, store_url)
    assert programs.ran("worked") == ["21"]


def test_a_worker_killed_right_before_the_outcome_leaves_neither(app: Windlass, store_url: str, programs: Programs):
    """J5.5, J4.3: no callback of an outcome that did not happen; the job runs again, and then has one."""
    handle = killed(app, programs, store_url, "before")
    assert (handle.status(), one(store_url, FOLLOWERS)) == (JobStatus.RUNNING, 0)
    finished(app, programs, store_url)
    assert programs.ran("worked") == ["21", "21"]
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["lost", "succeeded"]
