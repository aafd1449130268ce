"""Chains: stored at once, released one by one, canceled from the point of failure on."""

from datetime import timedelta

import pytest

from tests.engine.apps import LONG, Apps, Gate, count, query, until
from tests.engine.jobs import hold
from tests.flow.flow_bodies import BROKEN, RAN, Jobs, all_jobs, id_of, run_one, states
from windlass import RESULT, Call, Flow, JobCanceled, JobStatus, NodeSettings, Settings, Windlass
from windlass.domain.clock import VirtualClock
from windlass.testing import drain


def chain(jobs: Jobs, *names: str):
    flow = jobs.step.bind(names[0]).then(jobs.step.bind(names[1]))
    for name in names[2:]:
        flow = flow.then(jobs.step.bind(name))
    return flow


def test_the_steps_of_a_chain_run_one_after_the_other(app: Windlass, jobs: Jobs):
    """J8.1: all are stored at once; the handle is that of the first."""
    handle = chain(jobs, "a", "b", "c").enqueue()
    assert [job.status for job in all_jobs(app)] == [JobStatus.PENDING] * 3
    assert handle.id == all_jobs(app)[0].id
    assert drain(app).succeeded == 3
    assert RAN == ["a", "b", "c"]
    assert handle.result() == "a"


def test_a_follower_is_invisible_to_claims_until_its_parent_has_succeeded(app: Windlass, jobs: Jobs):
    """J8.1, api.md: PENDING without a due time; `explain` says what it waits for."""
    chain(jobs, "a", "b").enqueue()
    first, second = all_jobs(app)
    assert (second.status, second.due_at, second.parent_id) == (JobStatus.PENDING, None, first.id)
    assert app.explain(second.id).code == "not_released"
    run_one(app)
    assert app.get(second.id).due_at is not None


def test_a_failure_cancels_what_is_downstream(app: Windlass, jobs: Jobs):
    """J8.1: with the reason, and without running it; what succeeded before stays."""
    BROKEN.add("b")
    chain(jobs, "a", "b", "c", "d").enqueue()
    drain(app)
    assert states(app) == {
        "a": "SUCCEEDED",
        "b": "FAILED",
        "c": "CANCELED upstream_failed",
        "d": "CANCELED upstream_failed",
    }
    assert RAN == ["a", "b"]


def test_a_step_that_is_retried_cancels_nothing(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J8.1: only a permanent failure does."""
    BROKEN.add("a")
    jobs.step.using(max_retries=1).bind("a").then(jobs.step.bind("b")).enqueue()
    run_one(app)
    assert states(app) == {"a": "PENDING", "b": "PENDING"}
    BROKEN.clear()
    assert drain(app).succeeded == 2
    assert states(app) == {"a": "SUCCEEDED", "b": "SUCCEEDED"}


def test_a_cancel_cancels_what_is_downstream_depth_first(app: Windlass, jobs: Jobs):
    """J2.2, J8.1: the events come in that order."""
    canceled: list[str] = []
    app.on(JobCanceled)(lambda event: canceled.append(app.get(event.job_id).args[0]))
    handle = chain(jobs, "a", "b", "c").enqueue()
    assert handle.cancel()
    until(lambda: len(canceled) == 3)
    assert canceled == ["a", "b", "c"]
    assert states(app)["c"] == "CANCELED upstream_canceled"
    assert not drain(app)


def test_canceling_a_step_in_the_middle_leaves_those_before_it(app: Windlass, jobs: Jobs):
    """J2.2: downstream only."""
    chain(jobs, "a", "b", "c").enqueue()
    assert app.cancel(id_of(app, "b"))
    drain(app)
    assert states(app) == {"a": "SUCCEEDED", "b": "CANCELED canceled", "c": "CANCELED upstream_canceled"}


def test_cancel_by_tag_cancels_downstream(app: Windlass, jobs: Jobs):
    """J2.2, J2.4: what follows a tagged job need not have the tag."""
    jobs.step.using(tags=["old"]).bind("a").then(jobs.step.bind("b")).enqueue()
    assert app.cancel_by_tag("old") == 1
    assert states(app) == {"a": "CANCELED canceled", "b": "CANCELED upstream_canceled"}


def test_replacing_a_step_cancels_downstream(app: Windlass, jobs: Jobs):
    """J2.4: superseded is canceled."""
    handle = chain(jobs, "a", "b").enqueue()
    app.replace(handle.id, jobs.step.bind("new"))
    assert states(app)["b"] == "CANCELED upstream_canceled"


def test_a_superseded_business_key_cancels_downstream(app: Windlass, jobs: Jobs):
    """J1.5: `on_conflict="replace"`."""
    jobs.step.using(business_key="k").bind("a").then(jobs.step.bind("b")).enqueue()
    jobs.step.using(business_key="k", on_conflict="replace").bind("new").enqueue()
    assert states(app) == {"a": "CANCELED superseded", "b": "CANCELED upstream_canceled", "new": "PENDING"}


def test_an_expired_step_cancels_downstream(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J1.9: its followers are treated as for a cancel."""
    jobs.step.using(expires=10).bind("a").then(jobs.step.bind("b")).enqueue()
    clock.advance(11)
    assert drain(app).canceled == 1
    assert states(app) == {"a": "CANCELED expired", "b": "CANCELED upstream_canceled"}


def test_a_lost_worker_cancels_downstream_once_its_budget_is_spent(apps: Apps, gate: Gate):
    """J7.4, J8.1: the job fails outside of any attempt, and still ends its flow."""
    app = apps(settings=Settings(node=NodeSettings(crash_budget=0, recovery_interval=0.05)))
    held, follower = app.job(hold), app.job(Jobs(app).step.function)
    handle = held.bind(gate.name).then(follower.bind("b")).enqueue()
    with app.worker() as worker:
        gate.wait_entered()
        assert worker.node is not None
        node = worker.node.id
        app.database.run(_lose, node)
        assert handle.join(timeout=LONG) is JobStatus.FAILED
        until(lambda: states(app) == {"b": "CANCELED upstream_failed"})
        gate.open()


def _lose(dialect, node: str):
    from windlass.stores.plan import Step

    yield Step("script", {"text": f"UPDATE windlass_node SET state = 'lost' WHERE id = '{node}';"})


def test_delays_of_followers_count_from_their_release(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J8.1, flows §4: not from the enqueue; a due time is a lower bound."""
    later = clock.now() + timedelta(hours=2)
    flow = jobs.step.using(delay=60).bind("a").then(jobs.step.using(delay=30).bind("b"))
    flow.then(jobs.step.using(run_at=later).bind("c")).enqueue()
    assert not drain(app)
    clock.advance(60)
    assert drain(app).succeeded == 1
    assert app.get(id_of(app, "b")).due_at == clock.now() + timedelta(seconds=30)
    clock.advance(30)
    assert drain(app).succeeded == 1
    assert app.get(id_of(app, "c")).due_at == later


def test_pausing_the_head_holds_its_followers(app: Windlass, jobs: Jobs):
    """J2.3."""
    handle = chain(jobs, "a", "b").enqueue()
    assert handle.pause()
    assert not drain(app)
    assert handle.resume()
    assert drain(app).succeeded == 2


def test_a_paused_follower_stays_paused_when_it_is_released(app: Windlass, jobs: Jobs):
    """J2.3: it gets its due time, and runs once it is resumed."""
    chain(jobs, "a", "b").enqueue()
    follower = id_of(app, "b")
    assert app.pause(follower)
    assert drain(app).succeeded == 1
    assert (app.get(follower).status, app.get(follower).due_at is None) == (JobStatus.PAUSED, False)
    assert app.resume(follower)
    assert drain(app).succeeded == 1


def test_a_paused_follower_that_is_resumed_early_still_waits(app: Windlass, jobs: Jobs):
    """J2.3: resuming is no release."""
    chain(jobs, "a", "b").enqueue()
    assert app.pause(id_of(app, "b"))
    assert app.resume(id_of(app, "b"))
    run_one(app)
    assert RAN == ["a"]


def test_several_steps_may_follow_one(app: Windlass, jobs: Jobs):
    """J8.1: a flow is a value: two flows that begin alike are two flows."""
    start = jobs.step.bind("a")
    start.then(jobs.step.bind("b")).enqueue()
    start.then(jobs.step.bind("c")).enqueue()
    assert drain(app).succeeded == 4
    assert RAN.count("a") == 2


def test_the_first_key_makes_the_whole_flow_a_duplicate(app: Windlass, apps: Apps, jobs: Jobs):
    """J8.1, J1.4: nothing is stored a second time."""
    flow = jobs.step.using(idempotency_key="once").bind("a").then(jobs.step.bind("b"))
    first, second = flow.enqueue(), flow.enqueue()
    assert (first.duplicate, second.duplicate, first.id == second.id) == (False, True, True)
    assert (count(apps.url, "job"), count(apps.url, "flow")) == (2, 2)


def test_two_flows_of_one_key_in_one_call_are_one(app: Windlass, apps: Apps, jobs: Jobs):
    """J1.4: the second one of `enqueue_many` is the duplicate."""
    flows = [jobs.step.using(idempotency_key="once").bind(n).then(jobs.step.bind(f"{n}2")) for n in "ab"]
    calls: list[Call[str] | Flow[str]] = [*flows, jobs.step.bind("alone")]
    handles = app.enqueue_many(calls)
    assert [handle.duplicate for handle in handles] == [False, True, False]
    assert count(apps.url, "job") == 3


def test_an_existing_holder_of_the_heads_business_key_is_returned_for_the_flow(app: Windlass, apps: Apps, jobs: Jobs):
    """J1.5: `return_existing` on the head stores nothing of the flow."""
    keyed = jobs.step.using(business_key="k", on_conflict="return_existing")
    holder = keyed.bind("a").enqueue()
    handle = keyed.bind("b").then(jobs.step.bind("c")).enqueue()
    assert (handle.id, handle.duplicate, count(apps.url, "job")) == (holder.id, True, 1)


def test_a_canceled_follower_releases_its_business_key(app: Windlass, jobs: Jobs):
    """J1.5: like every canceled job."""
    handle = jobs.step.bind("a").then(jobs.step.using(business_key="k").bind("b")).enqueue()
    handle.cancel()
    jobs.step.using(business_key="k").bind("c").enqueue()


def test_followers_inherit_the_correlation_id_and_nothing_else(app: Windlass, jobs: Jobs):
    """flows §12: priority, queue and retries are their own."""
    head = jobs.step.using(correlation_id="order 7", priority=4, queue="fast", max_retries=3).bind("a")
    head.then(jobs.step.bind("b")).then(jobs.step.using(correlation_id="own").bind("c")).enqueue()
    found = [(job.correlation_id, job.priority, job.queue, job.max_retries) for job in all_jobs(app)]
    assert found == [("order 7", 4, "fast", 3), ("order 7", 2, "default", 0), ("own", 2, "default", 0)]


async def test_flows_have_async_twins(app: Windlass, jobs: Jobs):
    """api.md: `aenqueue`."""
    handle = await chain(jobs, "a", "b").aenqueue()
    assert await handle.astatus() is JobStatus.PENDING


def test_a_flow_joins_the_callers_transaction(apps: Apps):
    """J8.1, J10.3: rolled back, nothing of it is there; committed, all of it."""
    app = apps()
    jobs = Jobs(app)
    connect = _connect(apps.url)
    handle = None
    for commit, found in ((False, 0), (True, 3)):
        connection = connect()
        flow = jobs.double.using(connection=connection).bind(1).then(jobs.double).then(jobs.double)
        handle = flow.enqueue()
        connection.commit() if commit else connection.rollback()
        connection.close()
        assert (count(apps.url, "job"), count(apps.url, "flow"), count(apps.url, "hot")) == (found, found, found)
    assert drain(app).succeeded == 3
    assert handle is not None
    assert handle.result() == 2


def _connect(url: str):
    if url.startswith("sqlite"):
        import sqlite3

        from windlass.sqlite import prepare

        def connect():
            connection = sqlite3.connect(url.removeprefix("sqlite:///"))
            prepare(connection)
            return connection

        return connect
    import psycopg

    return lambda: psycopg.connect(url)


def test_a_worker_runs_a_chain_without_polling(apps: Apps):
    """J8.1, J3.6: a release wakes the node."""
    from tests.engine.apps import ONLY_WAKEUPS

    app = apps(settings=ONLY_WAKEUPS)
    jobs = Jobs(app)
    with app.worker():
        last = jobs.double.bind(1).then(jobs.double).then(jobs.double.bind(RESULT))
        last.enqueue()
        until(lambda: query(apps.url, "SELECT count(*) FROM windlass_done WHERE status = 'SUCCEEDED'") == [(3,)])


@pytest.mark.parametrize("retries", [0, 2])
def test_a_follower_keeps_its_own_retries(app: Windlass, jobs: Jobs, retries: int):
    """J8.1: and fails by itself."""
    BROKEN.add("b")
    jobs.step.bind("a").then(jobs.step.using(max_retries=retries).bind("b")).then(jobs.step.bind("c")).enqueue()
    drain(app)
    assert app.get(id_of(app, "b")).attempts == retries + 1
    assert states(app)["c"] == "CANCELED upstream_failed"
