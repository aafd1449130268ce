"""SIGKILL around the commit of a failure: state, dead letter and alert are all there, or none of them."""

from collections.abc import Iterator

import pytest

from tests.crash.programs.application import make_app
from tests.crash.programs.dead_letter_worker import fail
from tests.support.facts import one, statuses
from tests.support.programs import SHORT_LEASES, Programs
from tests.support.waiting import until
from windlass import JobHandle, JobStatus, Windlass

KILLED = -9


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = make_app(store_url, (fail,))
    application.migrate()
    yield application
    application.close()


def killed(app: Windlass, programs: Programs, url: str, moment: str) -> JobHandle[None]:
    """Have a worker fail a job, and die at that moment."""
    trap = {"WINDLASS_FAILPOINTS": f"dead_letter.{moment}_commit=kill"}
    worker = programs.start("dead_letter_worker", url, environ={**SHORT_LEASES, **trap})
    assert worker.node
    handle = app.bind(fail, 7).enqueue()
    assert worker.exit_code() == KILLED
    return handle


def kept(url: str) -> tuple[int, int, int]:
    """Dead letters, what their groups count, and alerts."""
    counted = one(url, "SELECT coalesce(sum(count), 0) FROM windlass_dead_letter_group")
    letters = one(url, "SELECT count(*) FROM windlass_dead_letter")
    return letters, int(counted), one(url, "SELECT count(*) FROM windlass_alert")


def test_a_worker_killed_before_the_commit_stores_neither_dead_letter_nor_alert(
    app: Windlass, store_url: str, programs: Programs
):
    """P9.C6, J5.4: not FAILED, no dead letter, no alert; another worker runs it again, then there is one of each."""
    handle = killed(app, programs, store_url, "before")
    assert (handle.status(), kept(store_url)) == (JobStatus.RUNNING, (0, 0, 0))
    programs.start("dead_letter_worker", store_url)
    until(lambda: statuses(store_url) == {"FAILED": 1}, "the job to fail")
    assert kept(store_url) == (1, 1, 1)
    assert programs.ran("failed") == ["7", "7"]
    assert app.dead_letters.get(handle.id).error_message == "ValueError: no 7"


def test_a_worker_killed_after_the_commit_has_stored_dead_letter_and_alert(
    app: Windlass, store_url: str, programs: Programs
):
    """P9.C6, J5.4: FAILED with its dead letter and its alert, which need no later write."""
    handle = killed(app, programs, store_url, "after")
    assert (handle.status(), kept(store_url)) == (JobStatus.FAILED, (1, 1, 1))
    assert programs.ran("failed") == ["7"]
    assert app.dead_letters.redrive().redriven == 1
    assert (handle.status(), kept(store_url)) == (JobStatus.PENDING, (0, 0, 1))
