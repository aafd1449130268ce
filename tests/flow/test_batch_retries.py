"""Failed children that are started over, while other things happen to their batch."""

import pytest

from tests.engine.apps import Apps, query
from tests.flow.batch_bodies import child_states
from tests.flow.flow_bodies import BROKEN, RAN, Jobs, id_of, raises, run_one, states
from windlass import DuplicateBusinessKeyError, JobStatus, Windlass, group
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import flow_retention, flow_revival, flows, operations
from windlass.testing import drain

S = JobStatus
OPERATIONS = "SELECT count(*) FROM windlass_operation"


@pytest.mark.parametrize("by_child", [False, True], ids=["retry_failed", "retry of its child"])
def test_retry_revives_the_step_behind_a_group_behind_the_batch(app: Windlass, jobs: Jobs, by_child: bool):
    """J2.4: what the failure canceled by way of a group comes back, too."""
    BROKEN.add("x")
    members = group(jobs.step.bind("a"), jobs.step.bind("b"))
    handle = (
        app.batch("letters").each(jobs.step, ["x"]).then_on_batch_success(members.then(jobs.step.bind("c"))).enqueue()
    )
    drain(app)
    assert states(app)["c"] == "CANCELED upstream_failed"
    BROKEN.clear()
    assert app.retry(id_of(app, "x")) if by_child else handle.retry_failed() == 1
    assert [states(app)[name] for name in "abc"] == ["PENDING"] * 3
    drain(app)
    assert set(states(app).values()) == {"SUCCEEDED"}


def test_retry_is_refused_while_another_job_has_the_key_of_a_follower(app: Windlass, apps: Apps, jobs: Jobs):
    """J1.5, J2.4: nothing is changed then, and no operation is left that could never be carried out."""
    BROKEN.add("a")
    follower = jobs.step.using(business_key="k")
    handle = app.batch("letters").each(jobs.step, ["a"]).then_on_batch_success(follower.bind("b")).enqueue()
    drain(app)
    holder = follower.bind("c").enqueue()
    with pytest.raises(DuplicateBusinessKeyError):
        handle.retry_failed()
    assert (handle.status(), handle.progress().complete) == (S.FAILED, True)
    assert query(apps.url, OPERATIONS) == [(0,)]
    assert holder.cancel()
    BROKEN.clear()
    assert handle.retry_failed() == 1
    drain(app)
    assert (handle.status(), states(app)["b"]) == (S.SUCCEEDED, "SUCCEEDED")


def test_cancel_stops_a_retry_that_is_carried_out(
    app: Windlass, apps: Apps, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
):
    """J2.2: no child of a canceled batch is started over."""
    monkeypatch.setattr(operations, "WINDOW", 2)
    BROKEN.update("abcde")
    handle = app.batch("letters").each(jobs.step, list("abcde")).enqueue()
    drain(app)
    RAN.clear()
    follow_ups = app._job_verbs.follow_ups
    left = app.database.run(operations.retry_failed, str(handle.id))
    assert left is not None
    left = app.database.run(operations.carry_on, left, follow_ups).effects.unfinished
    assert handle.cancel()
    while left:
        left = app.database.run(operations.carry_on, left, follow_ups).effects.unfinished
    assert child_states(app, handle) == {"CANCELED": 2, "FAILED": 3}
    assert (drain(app).total, handle.status(), handle.progress().complete) == (0, S.CANCELED, True)
    assert query(apps.url, OPERATIONS) == [(0,)]


def test_children_of_a_paused_batch_are_started_over_paused(app: Windlass, jobs: Jobs):
    """J2.3: they wait for its resume."""
    BROKEN.add("a")
    handle = app.batch("letters").each(jobs.step, list("ab")).enqueue()
    run_one(app)
    assert handle.pause()
    BROKEN.clear()
    assert handle.retry_failed() == 1
    assert child_states(app, handle) == {"PAUSED": 2}
    assert drain(app).total == 0
    assert handle.resume()
    drain(app)
    assert handle.status() is S.SUCCEEDED


@pytest.mark.parametrize("most", [1, flows.MOST_ROWS], ids=["in parts", "at once"])
def test_retry_of_a_follower_does_not_reopen_its_succeeded_batch(
    app: Windlass, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, most: int
):
    """J2.4: a batch that has succeeded is not live again because a job behind it is started over."""
    monkeypatch.setattr(flow_revival, "MOST_ROWS", most)
    BROKEN.add("a")
    made = app.batch("letters").each(jobs.step, ["x"]).when_batch(raises, jobs.step.bind("raised"))
    flow = jobs.step.bind("a").then(jobs.step.bind("b")).then(jobs.step.bind("c"))
    made.when_failure_count(1, jobs.step.bind("count")).then_on_batch_success(flow).enqueue()
    drain(app)
    BROKEN.clear()
    assert app.retry(id_of(app, "a"))
    decided = {"raised": "CANCELED predicate_failed", "count": "CANCELED not_chosen", "x": "SUCCEEDED"}
    assert states(app) == decided | dict.fromkeys("abc", "PENDING")
    drain(app)
    assert states(app) == decided | dict.fromkeys("abc", "SUCCEEDED")


def test_batch_is_not_archived_while_its_children_are_started_over(app: Windlass, apps: Apps, jobs: Jobs):
    """J8.6: `retry_failed` holds the lock of its flow until it commits, as archiving does."""
    if apps.url.startswith("sqlite"):
        pytest.skip("there is one writer")
    BROKEN.add("a")
    handle = app.batch("letters").each(jobs.step, ["a"]).then_on_batch_success(jobs.step.bind("b")).enqueue()
    drain(app)
    batch = str(handle.id)

    def archivable(dialect: Dialect) -> Plan[set[str]]:
        return (yield from flow_retention.lock_archivable(dialect, [batch], -1_000_000))

    def watched(dialect: Dialect) -> Plan[set[str]]:
        yield from operations.retry_failed(dialect, batch)
        return app.database.run(archivable)

    assert app.database.run(archivable) == {batch}
    assert app.database.run(watched) == set()
