"""The archive duty of a real worker, and what users see of it."""

from datetime import timedelta

import pytest

from tests.engine import jobs
from tests.maintenance.moving import DAY, Moving
from tests.support.facts import is_sqlite, rows
from tests.support.waiting import until
from windlass import DuplicateBusinessKeyError, JobStatus, Windlass
from windlass.domain.clock import SystemClock
from windlass.maintenance.archive_duty import ENOUGH_BYTES, FEWEST, MOST, next_size
from windlass.stores.plans import archive

S = JobStatus
LONG = 90


def end_some(app: Windlass) -> dict:
    """A handle on a job for each way to end, the failed one with a key, all with a tag."""
    note, fail = app.job(jobs.note).using(tags=["t"]), app.job(jobs.fail).using(tags=["t"], business_key="order:7")
    handles = {"canceled": note.using(delay=600).enqueue("never"), "ok": note.enqueue("x"), "failed": fail.enqueue("y")}
    handles["canceled"].cancel()
    with app.worker():
        assert handles["ok"].join(LONG) is S.SUCCEEDED
        assert handles["failed"].join(LONG) is S.FAILED
    return handles


def test_jobs_older_than_the_retention_move_and_look_the_same(moving: Moving):
    """J7.7: SUCCEEDED, FAILED and CANCELED; what lives, is held by hand, or ended lately stays."""
    app = moving.app()
    handles = end_some(app)
    held = app.job(jobs.fail).enqueue("held")
    with app.worker():
        held.join(LONG)
        assert held.pause()
    waiting = app.job(jobs.note).using(delay=timedelta(days=365)).enqueue("later")
    before = [app.get(handle.id) for handle in handles.values()], [app.history(h.id) for h in handles.values()]
    moving.clock.advance(29 * DAY)
    late = app.job(jobs.note).enqueue("late")
    with app.worker():
        late.join(LONG)
        until(lambda: app.health().sweeper_age is not None, "a duty to come round")
        assert moving.archived() == set()
        moving.clock.advance(2 * DAY)
        until(lambda: moving.later() and moving.count("archive") == 3, "the old ones to be moved", LONG)
    assert moving.archived() == {str(handle.id) for handle in handles.values()}
    assert ([app.get(h.id) for h in handles.values()], [app.history(h.id) for h in handles.values()]) == before
    assert [handle.status() for handle in (waiting, held, late)] == [S.PENDING, S.PAUSED, S.SUCCEEDED]
    assert handles["ok"].result(1) == "x"
    assert {job.id for job in app.find(tag="t")} == {handle.id for handle in handles.values()}
    assert [job.id for job in app.find(business_key="order:7")] == [handles["failed"].id]
    assert [job.id for job in app.find(status="FAILED")] == [handles["failed"].id]


def test_a_retention_of_nothing_archives_at_once(moving: Moving):
    """J7.7: with the next pass; handles that wait are answered all the same."""
    app = moving.app(SystemClock(), retention=0)
    handles = [app.job(jobs.note).using(idempotency_key=str(n)).enqueue(str(n)) for n in range(25)]
    with app.worker():
        assert [handle.result(LONG) for handle in handles] == [str(n) for n in range(25)]
        until(lambda: moving.count("archive") == 25, "all to be moved", LONG)
    assert [moving.count(name) for name in ("job", "hot", "done", "attempt", "progress", "job_log")] == [0] * 6
    again = app.job(jobs.note).using(idempotency_key="7").enqueue("again")
    assert (again.id, again.duplicate, again.result(1)) == (handles[7].id, True, "7")


def test_an_archived_dead_letter_is_retried_from_the_archive(moving: Moving):
    """J2.4: with the key it had, unless another job has it by now; retry_many does not touch the archive."""
    app = moving.app(SystemClock(), retention=0)
    handles = end_some(app)
    with app.worker():
        until(lambda: moving.count("archive") == 3, "all to be moved", LONG)
    taken = app.job(jobs.note).using(business_key="order:7", delay=600).enqueue("z")
    with pytest.raises(DuplicateBusinessKeyError, match="order:7"):
        app.retry(handles["failed"].id)
    taken.cancel()
    assert app.retry_many() == 0
    assert [handle.retry() for handle in handles.values()] == [False, False, True]
    assert app.get(handles["failed"].id).attempts == 0
    with app.worker():
        assert handles["failed"].join(LONG) is S.FAILED
    assert [attempt.outcome for attempt in app.history(handles["failed"].id)] == ["failed", "failed"]


def test_every_column_is_restored_from_the_archive(moving: Moving):
    """J7.7, J2.4: a job that was archived and restored is unchanged."""
    app = moving.app()
    fail = app.job(jobs.fail).using(max_retries=1, tags=["x", "y"], params={"a": 1}, correlation_id="c", timeout=7)
    handle = fail.using(idempotency_key="i", business_key="b").enqueue("no")
    with app.worker():
        handle.join(LONG)
    moving.clock.advance(60)  # it ended when its body had run for a while, by a clock that stood still
    tables = {"job": "id", "done": "id", "attempt": "job_id", "job_tag": "job_id", "key": "job_id"}
    literal = f"'{handle.id}'" if is_sqlite(moving.url) else f"'{handle.id}'::uuid"

    def everything() -> dict:
        asked = {table: f"SELECT * FROM windlass_{table} WHERE {key} = {literal}" for table, key in tables.items()}
        return {table: sorted(map(str, rows(moving.url, question))) for table, question in asked.items()}

    before = everything()
    assert [len(found) for found in before.values()] == [1, 1, 2, 2, 1]
    assert app.database.run(archive.move, [str(handle.id)]).jobs == 1
    assert [len(found) for found in everything().values()] == [0, 0, 0, 2, 1]
    assert len(app.database.run(archive.bring_back, [str(handle.id)])) == 1
    assert everything() == before


@pytest.mark.parametrize(
    ("size", "moved", "expected"),
    [
        (FEWEST, archive.Moved(FEWEST, 4_000), 2 * FEWEST),
        (MOST, archive.Moved(MOST, 4_000), MOST),
        (MOST, archive.Moved(MOST, ENOUGH_BYTES + 1), MOST // 2),
        (FEWEST, archive.Moved(FEWEST, 10 * ENOUGH_BYTES), FEWEST),
        (100, archive.Moved(100, ENOUGH_BYTES), 100),
        (100, archive.Moved(0, 0), 200),
    ],
)
def test_batches_are_bounded_by_what_they_carry(size: int, moved: archive.Moved, expected: int):
    """J7.7: hundreds of small jobs, few large ones."""
    assert next_size(size, moved) == expected
