"""Batches in the archive, purged ones, and damaged ones."""

import pytest

from tests.engine.apps import Apps, query
from tests.flow.flow_bodies import BROKEN, Jobs, id_of, run_one, states
from tests.flow.test_checks import change
from tests.flow.test_flow_archive import DAY, archive
from windlass import JobStateError, JobStatus, Windlass
from windlass.domain.clock import VirtualClock
from windlass.domain.identity import FIRST_ID
from windlass.errors import JobNotFoundError
from windlass.stores.plans import flow_checks
from windlass.testing import drain

S = JobStatus


def test_canceled_batch_keeps_its_counts_in_the_archive(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J8.4, J7.7: its progress reads as before."""
    handle = app.batch("letters").each(jobs.step, list("abc")).enqueue()
    run_one(app)
    assert handle.cancel()
    before = handle.progress()
    assert (before.completed, before.failed, before.complete) == (1, 2, True)
    clock.advance(31 * DAY)
    archive(app)
    assert (handle.progress(), handle.status()) == (before, S.CANCELED)


def test_retry_of_an_archived_batch_is_refused_with_advice_to_retry_single_children(
    app: Windlass, jobs: Jobs, clock: VirtualClock
):
    """J2.4: it is refused, not passed over; a single one makes the batch live again."""
    BROKEN.add("a")
    handle = app.batch("letters").each(jobs.step, list("ab")).enqueue()
    drain(app)
    clock.advance(31 * DAY)
    archive(app)
    for retry in (handle.retry_failed, lambda: app.retry(handle.id)):
        with pytest.raises(JobStateError, match="the batch is archived, and so are its children"):
            retry()
    BROKEN.clear()
    assert app.retry(id_of(app, "a"))
    drain(app)
    assert (handle.status(), handle.retry_failed()) == (S.SUCCEEDED, 0)


def test_failed_children_of_what_is_no_batch(app: Windlass, jobs: Jobs):
    """J8.4: a mistaken id is an error, as it is for its progress."""
    plain = jobs.step.bind("a").enqueue()
    for wrong in (plain.id, "0198c0de-0000-7000-8000-000000000001"):
        with pytest.raises(JobNotFoundError):
            app.batch_handle(wrong).retry_failed()
    assert not app.retry(plain.id)


def test_archived_and_purged_batches_are_duplicates(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J1.4, J8.4: by their keys, which stay, or by the id of an archived one; nothing is stored."""
    BROKEN.add("a")
    made = app.batch("letters", idempotency_key="k").each(jobs.step, ["a"])
    handle = made.enqueue()
    drain(app)
    clock.advance(31 * DAY)
    archive(app)
    for again in (made.enqueue(), made.enqueue(resume=handle.id)):
        assert (again.id, again.duplicate) == (handle.id, True)
    change(app, "DELETE FROM windlass_archive")
    assert (made.enqueue().id, made.enqueue().duplicate) == (handle.id, True)
    with pytest.raises(JobNotFoundError):
        made.enqueue(resume=handle.id)


def test_counts_of_a_batch_with_archived_children_are_not_changed(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J7.5: an archived child has ended and is counted, though it is not among the working tables."""
    BROKEN.update("ab")
    handle = app.batch("letters").each(jobs.step, list("abc")).enqueue()
    drain(app)
    clock.advance(31 * DAY)
    archive(app)
    BROKEN.clear()
    assert app.retry(id_of(app, "a"))
    clock.advance(3_600)
    assert app.database.run(flow_checks.recount, FIRST_ID).found == 0
    assert (handle.progress().completed, handle.progress().failed) == (1, 1)
    drain(app)
    assert (handle.status(), handle.progress().completed) == (S.FAILED, 2)


@pytest.mark.parametrize("canceled", [False, True])
def test_conditions_of_a_damaged_batch_do_not_hold(app: Windlass, apps: Apps, jobs: Jobs, canceled: bool):
    """J7.9: they are lost, and no follower waits for ever."""
    made = app.batch("letters").each(jobs.step, ["a"]).then_on_batch_success(jobs.step.bind("success"))
    made = made.when_success_rate(0.5, jobs.step.bind("rate").then(jobs.step.bind("behind")))
    handle = made.when_failure_count(1, jobs.step.bind("count")).enqueue()
    change(app, f"UPDATE windlass_job SET options = '{{damaged' WHERE id = '{handle.id}'")
    if canceled:
        assert handle.cancel()
        app.database.run(flow_checks.release_missed, FIRST_ID)
    drain(app)
    ended = "CANCELED upstream_canceled" if canceled else "SUCCEEDED"
    assert (handle.status().value, states(app)["success"]) == (ended.partition(" ")[0], ended)
    left = {states(app)[name].partition(" ")[0] for name in ("rate", "behind", "count")}
    assert left == {"CANCELED"}
    assert query(apps.url, "SELECT count(*) FROM windlass_hot") == [(0,)]
