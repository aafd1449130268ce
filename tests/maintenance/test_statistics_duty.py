"""Counts that are added up, read and forgotten while real nodes work."""

from tests.engine import jobs
from tests.maintenance.moving import DAY, Moving
from tests.support.facts import one
from tests.support.waiting import until
from windlass import Backoff, JobStatus, QueueHour, Windlass

LONG = 90
NOTHING = QueueHour(succeeded=0, failed=0, retried=0, wait_ms=None, run_ms=None)


def hours(app: Windlass) -> dict[str, QueueHour]:
    return {queue.name: queue.last_hour for queue in app.queues()}


def added_up(moving: Moving) -> bool:
    moving.later()
    return moving.count("stat_delta") == 0


def test_queues_show_what_ended_in_the_last_hour(moving: Moving):
    """J7.5, J1.7: succeeded, failed for good, retried, and how long they waited and ran; then only what is young."""
    app = moving.app()
    note, fail = app.job(jobs.note), app.job(max_retries=1, backoff=Backoff.none())(jobs.fail)
    good = app.enqueue_many([note.bind(f"{n}").using(queue="mail") for n in range(20)])
    bad = fail.using(queue="billing").enqueue("no")
    app.pause_queue("quiet", create=True)
    with app.worker():
        assert {handle.join(LONG) for handle in good} == {JobStatus.SUCCEEDED}
        assert bad.join(LONG) is JobStatus.FAILED
        until(lambda: added_up(moving), "the duty to add all of it up", LONG)
        found = hours(app)
        mail, billing = found["mail"], found["billing"]
        assert (mail.succeeded, mail.failed, mail.retried) == (20, 0, 0)
        assert (billing.succeeded, billing.failed, billing.retried) == (0, 1, 1)
        assert None not in (mail.wait_ms, mail.run_ms, billing.wait_ms, billing.run_ms)
        assert found["quiet"] == NOTHING
        assert int(one(moving.url, "SELECT sum(succeeded) + sum(failed) FROM windlass_stat")) == 21
        moving.clock.advance(3600)
        assert set(hours(app).values()) == {NOTHING}
        assert moving.count("stat") > 0, "older hours are kept"


def test_minutes_are_forgotten_after_30_days(moving: Moving):
    """J7.5: not before."""
    app = moving.app()
    handle = app.job(jobs.note).enqueue("x")
    with app.worker():
        handle.join(LONG)
        until(lambda: added_up(moving), "the duty to pass", LONG)
        moving.clock.advance(29 * DAY)
        passed = one(moving.url, "SELECT coalesce(max(passed_at), 0) FROM windlass_lease WHERE name = 'statistics'")
        again = f"SELECT count(*) FROM windlass_lease WHERE name = 'statistics' AND passed_at > {passed} + 1"
        until(lambda: moving.later() and one(moving.url, again) == 1, "the duty to pass again", LONG)
        assert moving.count("stat") == 1
        moving.clock.advance(DAY)
        until(lambda: moving.later() and moving.count("stat") == 0, "the minute to be forgotten", LONG)
