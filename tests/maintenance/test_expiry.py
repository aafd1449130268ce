"""`expires`: a job that has not started by then is canceled, by the node that claims it or by the sweeper."""

from datetime import timedelta
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Gate, query, until
from tests.maintenance.moving import Moving
from tests.support.facts import rows
from windlass import JobCanceled, JobCanceledError, JobStatus, Windlass
from windlass.stores.plans import moves
from windlass.testing import advance, drain, isolated

HOUR = 3600


def canceled_events(app: Windlass) -> list[JobCanceled]:
    events: list[JobCanceled] = []
    app.on(JobCanceled)(events.append)
    return events


def ended(app: Windlass, handle: Any) -> tuple[JobStatus, str | None, int]:
    job = app.get(handle.id)
    return job.status, job.reason, job.attempts


EXPIRED = (JobStatus.CANCELED, "expired", 0)


def test_an_expired_job_is_not_started_by_the_node_that_claims_it(moving: Moving):
    """J1.9: CANCELED, reason `expired`; the body is not entered, the business key and the permit are free again."""
    app = moving(clock=moving.clock)
    app.configure_resource("printer", max_concurrent=1)
    events = canceled_events(app)
    note = app.job(resource="printer", expires=60)(jobs.note)
    late = note.using(business_key="order:7").enqueue("late")
    moving.clock.advance(61)
    in_time = note.enqueue("in time")
    drain(app)  # a node without a sweeper
    with pytest.raises(JobCanceledError, match=r"was canceled \(expired\)") as error:
        late.result(LONG)
    assert in_time.result(LONG) == "in time"
    assert error.value.reason == "expired"
    assert ended(app, late) == EXPIRED
    assert [attempt.outcome for attempt in app.history(late.id)] == ["expired"]
    assert (jobs.seen, [resource.in_use for resource in app.resources()]) == (["in time"], [0])
    assert [(event.job_id, event.reason) for event in events] == [(late.id, "expired")]
    note.using(business_key="order:7").enqueue("again")


def test_expired_jobs_that_are_not_claimed_are_canceled_by_the_sweeper(moving: Moving):
    """J1.9: in a paused queue, or paused itself, in bounded batches; waiting handles are woken; published once."""
    app = moving.app()
    events = canceled_events(app)
    note = app.job(queue="held", expires=timedelta(hours=1))(jobs.note)
    app.pause_queue("held")
    handles = [note.using(business_key="order:7").enqueue("x"), *(note.enqueue("x") for _ in range(2))]
    handles[1].pause()
    stays = note.using(expires=None).enqueue("y")
    with app.worker():
        moving.clock.advance(HOUR + 1)
        for handle in handles:
            until(lambda: moving.later() and handle.status() is JobStatus.CANCELED)  # noqa: B023 - called at once
            with pytest.raises(JobCanceledError, match="expired"):
                handle.result(LONG)
    assert [ended(app, handle) for handle in handles] == [EXPIRED] * 3
    assert app.history(handles[0].id) == []
    assert sorted(event.job_id for event in events) == sorted(handle.id for handle in handles)
    assert {event.reason for event in events} == {"expired"}
    assert ended(app, stays)[0] is JobStatus.PENDING
    note.using(business_key="order:7").enqueue("again")


def test_a_job_that_has_started_does_not_expire(moving: Moving, gate: Gate):
    """J1.9: it holds for the first start; a retry comes however late."""
    app = moving.app()
    hold = app.job(expires=60)(jobs.hold)
    fail = app.job(expires=60, max_retries=1)(jobs.fail)
    with app.worker():
        running, failing = hold.enqueue(gate.name), fail.using(delay=0).enqueue("x")
        gate.wait_entered()
        until(lambda: app.get(failing.id).attempts >= 1)
        moving.clock.advance(HOUR)
        gate.open()
        assert running.result(LONG) == "let go"
        assert failing.join(LONG) is JobStatus.FAILED
    assert app.get(failing.id).attempts == 2


def test_a_time_and_many_calls_at_once(moving: Moving):
    """J1.9: an aware time; stored by enqueue_many in each of its ways, and shown by explain."""
    app = moving(clock=moving.clock)
    note = app.job(jobs.note)
    moment = moving.clock.now() + timedelta(minutes=1)
    calls = [note.bind(str(number)).using(expires=moment) for number in range(150)]
    handles = app.enqueue_many(calls)
    (stored,) = set(query(moving.url, "SELECT DISTINCT expires FROM windlass_hot"))
    assert stored == (int(moment.timestamp() * 1_000_000),)
    assert "it is canceled unless it has started by" in app.explain(handles[0].id).message
    moving.clock.advance(120)
    assert app.explain(handles[0].id).code == "expired"
    with app.worker():
        assert {handle.join(LONG) for handle in handles} == {JobStatus.CANCELED}
    assert jobs.seen == []
    assert app.explain(handles[0].id).message.endswith("(expired)")


def test_a_callback_may_expire(moving: Moving):
    """J1.9, J5.5: counted from the outcome it follows."""
    app = moving(clock=moving.clock)
    note = app.job(jobs.note)
    after = app.bind(jobs.note, "after").using(queue="held", expires=60)
    note.using(on_success=after).enqueue("first")
    moving.clock.advance(HOUR)
    drain(app, queues=["default"])
    assert query(moving.url, "SELECT expires FROM windlass_hot") == [(moving.clock.micros() + 60_000_000,)]


def test_a_test_sees_it_too(sqlite_url: str):
    """J1.9: with a clock of the test's own; a drain counts it as canceled."""
    app = Windlass(sqlite_url)
    note = app.job(expires=60)(jobs.note)
    with isolated(app):
        note.enqueue("late")
        advance(61)
        note.enqueue("in time")
        assert (done := drain(app)).canceled == 1
        assert (done.succeeded, jobs.seen) == (1, ["in time"])
    app.close()


def test_a_damaged_status_does_not_keep_others_from_expiring(moving: Moving):
    """J7.9, J1.9: the sweeper passes over what it cannot read."""
    app = moving(clock=moving.clock)
    note = app.job(expires=0.5)(jobs.note)
    damaged, fine = note.enqueue("damaged"), note.enqueue("fine")
    rows(moving.url, f"UPDATE windlass_hot SET status = 'XYZ' WHERE id = '{damaged.id}'")
    moving.clock.advance(1)
    canceled = app.database.run(moves.cancel_expired, 10)
    assert [job.job_id for job in canceled.ended] == [str(fine.id)]
