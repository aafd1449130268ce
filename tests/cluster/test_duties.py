"""Duties of several real workers: one does them, and a stopped one that wakes up spoils nothing."""

import re
from collections.abc import Iterator

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import one, rows
from tests.support.freezing import freeze_between_writes
from tests.support.programs import SHORT_LEASES, STEADY_LEASES, Program, Programs
from tests.support.waiting import until
from windlass import JobStatus, Windlass

JOBS = 450
"""More than two batches of a recovery."""
ARCHIVES_AT_ONCE = {**SHORT_LEASES, "WINDLASS_JOBS__RETENTION": "0", "WINDLASS_JOBS__ARCHIVE_INTERVAL": "0.02"}
HOLDER = "SELECT holder FROM windlass_lease WHERE name = 'archive'"


@pytest.fixture
def app(store_url: str) -> Iterator[Windlass]:
    application = make_app(store_url)
    application.migrate()
    yield application
    application.close()


def test_of_two_workers_one_recovers_a_lost_one(app: Windlass, store_url: str, programs: Programs):
    """J7.5, J7.2: every job is requeued once, and the loss is published by the node that recovered it."""
    doomed = programs.worker(store_url, JOBS)
    name = doomed.node
    handles = app.enqueue_many([app.bind(bodies.hold, n) for n in range(JOBS)])
    until(lambda: len(programs.ran("began")) == JOBS, "all bodies to begin")
    others = [programs.worker(store_url, 20, environ=STEADY_LEASES) for _ in range(2)]
    assert all(other.node for other in others)
    doomed.kill()
    programs.open_gate()
    assert {handle.join(90) for handle in handles} == {JobStatus.SUCCEEDED}
    counts = [re.findall(rf"node {name} was lost; (\d+) of its jobs", other.printed) for other in others]
    assert sum(int(count) for found in counts for count in found) == JOBS
    assert rows(store_url, "SELECT DISTINCT attempts, crash_count FROM windlass_done") == [(1, 1)]
    assert one(store_url, "SELECT count(*) FROM windlass_attempt WHERE outcome = 'lost'") == JOBS
    for other in others:
        other.terminate()
        assert other.exit_code() == 0


def test_a_stopped_holder_of_a_duty_that_wakes_up_changes_nothing(app: Windlass, store_url: str, programs: Programs):
    """J7.5, J7.7: another one takes over and archives all the rest; each job is in the archive once, whole."""
    first, second = (programs.worker(store_url, 50, environ=ARCHIVES_AT_ONCE) for _ in range(2))
    names = {first.node: first, second.node: second}
    app.enqueue_many([app.bind(bodies.note, n) for n in range(1500)])

    def stop_the_holder() -> Program | None:
        holder = names.get(one(store_url, HOLDER))
        return holder if holder is not None and freeze_between_writes(holder, store_url) else None

    until(lambda: one(store_url, "SELECT count(*) FROM windlass_lease WHERE name = 'archive'"), "the duty to be known")
    stopped = until(stop_the_holder, "a holder to be stopped between two writes")
    until(lambda: _left(store_url) == 0, "the other one to do all of it")
    before = rows(store_url, "SELECT id, job FROM windlass_archive ORDER BY id")
    assert len(before) == 1500
    stopped.resume()
    more = app.enqueue_many([app.bind(bodies.note, n) for n in range(1500, 1520)])
    assert {handle.join(90) for handle in more} == {JobStatus.SUCCEEDED}
    for worker in (first, second):
        worker.terminate()
        assert worker.exit_code() == 0
    after = dict(rows(store_url, "SELECT id, job FROM windlass_archive"))
    assert [(job, after[job]) for job, _ in before] == before
    assert len(after) + int(one(store_url, "SELECT count(*) FROM windlass_done")) == 1520
    assert sorted(set(map(int, programs.ran()))) == list(range(1520))


def _left(url: str) -> int:
    return int(one(url, "SELECT (SELECT count(*) FROM windlass_hot) + (SELECT count(*) FROM windlass_done)"))
