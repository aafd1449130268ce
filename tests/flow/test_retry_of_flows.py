"""Retry revives what a failure had canceled, and leaves what had run."""

import pytest

from tests.engine.apps import Apps, query
from tests.flow.flow_bodies import BROKEN, RAN, Jobs, id_of, states
from windlass import DuplicateBusinessKeyError, JobStatus, Windlass, group
from windlass.domain.clock import VirtualClock
from windlass.testing import drain


def test_retry_revives_what_the_failure_canceled(app: Windlass, jobs: Jobs):
    """J2.4: not yet released; the chain then goes on to its end."""
    BROKEN.add("b")
    jobs.step.bind("a").then(jobs.step.bind("b")).then(jobs.step.bind("c")).then(jobs.step.bind("d")).enqueue()
    drain(app)
    BROKEN.clear()
    assert app.retry(id_of(app, "b"))
    assert states(app) == {"a": "SUCCEEDED", "b": "PENDING", "c": "PENDING", "d": "PENDING"}
    assert app.get(id_of(app, "c")).due_at is None
    drain(app)
    assert set(states(app).values()) == {"SUCCEEDED"}
    assert RAN == ["a", "b", "b", "c", "d"]


def test_a_failure_after_a_retry_cancels_again(app: Windlass, jobs: Jobs):
    """J2.4: as often as it happens."""
    BROKEN.add("a")
    handle = jobs.step.bind("a").then(jobs.step.bind("b")).enqueue()
    for _ in range(3):
        drain(app)
        assert states(app) == {"a": "FAILED", "b": "CANCELED upstream_failed"}
        assert handle.retry()


def test_jobs_canceled_by_a_user_stay_canceled(app: Windlass, jobs: Jobs):
    """J2.4: only what this failure canceled is revived."""
    BROKEN.add("a")
    handle = jobs.step.bind("a").then(jobs.step.bind("b")).then(jobs.step.bind("c")).enqueue()
    app.cancel(id_of(app, "c"))
    drain(app)
    BROKEN.clear()
    handle.retry()
    drain(app)
    assert states(app) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "CANCELED canceled"}


def test_retry_of_the_last_failed_member_revives_the_join(app: Windlass, jobs: Jobs):
    """J8.3, J2.4: not that of the first of two."""
    BROKEN.update("ab")
    join = group(*(jobs.step.bind(name) for name in "abc")).then(jobs.join).then(jobs.join).enqueue()
    drain(app)
    BROKEN.clear()
    app.retry(id_of(app, "a"))
    assert join.status() is JobStatus.CANCELED
    app.retry(id_of(app, "b"))
    assert join.status() is JobStatus.PENDING
    drain(app)
    assert join.result() == ["a", "b", "c"]


def test_retry_before_the_other_members_have_ended(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J8.3: counts are taken back, not reset."""
    BROKEN.add("a")
    join = group(jobs.step.bind("a"), jobs.step.using(delay=60).bind("b")).then(jobs.join).enqueue()
    drain(app)
    BROKEN.clear()
    assert app.retry(id_of(app, "a"))
    drain(app)
    assert join.status() is JobStatus.PENDING
    clock.advance(60)
    drain(app)
    assert join.result() == ["a", "b"]


def test_a_chain_inside_a_group_is_revived_with_its_join(app: Windlass, jobs: Jobs, apps: Apps):
    """J2.4, J8.3: the canceled last step of the member is taken off the failed ones."""
    BROKEN.add("a")
    member = jobs.step.bind("a").then(jobs.step.bind("b"))
    join = group(member, jobs.step.bind("c")).then(jobs.join).enqueue()
    drain(app)
    assert query(apps.url, "SELECT total, succeeded, failed FROM windlass_group") == [(2, 1, 1)]
    BROKEN.clear()
    app.retry(id_of(app, "a"))
    assert query(apps.url, "SELECT total, succeeded, failed FROM windlass_group") == [(2, 1, 0)]
    drain(app)
    assert join.result() == ["b", "c"]


def test_nested_joins_are_revived(app: Windlass, jobs: Jobs):
    """J2.4, J8.3: from the inner one outwards."""
    BROKEN.add("a")
    inner = group(jobs.step.bind("a"), jobs.step.bind("b")).then(jobs.join)
    outer = group(inner, jobs.step.bind("c")).then(jobs.join).then(jobs.join).enqueue()
    drain(app)
    BROKEN.clear()
    app.retry(id_of(app, "a"))
    drain(app)
    assert outer.result() == [["a", "b"], "c"]


def test_followers_that_have_run_do_not_run_again(app: Windlass, jobs: Jobs):
    """J2.4: a step behind all ends, and one behind a failure, run once."""
    BROKEN.add("a")
    join = group(jobs.step.bind("a"), jobs.step.bind("b")).then_on_failure(jobs.judge).then(jobs.join).enqueue()
    drain(app)
    assert RAN.count("judge") == 1
    BROKEN.clear()
    app.retry(id_of(app, "a"))
    drain(app)
    assert (join.result(), RAN.count("judge")) == (["a", "b"], 1)


def test_keys_of_followers_are_taken_again(app: Windlass, jobs: Jobs):
    """J2.4, J1.5."""
    BROKEN.add("a")
    handle = jobs.step.bind("a").then(jobs.step.using(business_key="k").bind("b")).enqueue()
    drain(app)
    handle.retry()
    with pytest.raises(DuplicateBusinessKeyError):
        jobs.step.using(business_key="k").bind("c").enqueue()


def test_a_key_that_another_job_holds_refuses_the_whole_retry(app: Windlass, jobs: Jobs):
    """J2.4: nothing is changed."""
    BROKEN.add("a")
    handle = jobs.step.bind("a").then(jobs.step.using(business_key="k").bind("b")).enqueue()
    drain(app)
    jobs.step.using(business_key="k", delay=60).bind("c").enqueue()
    with pytest.raises(DuplicateBusinessKeyError, match="'k'"):
        handle.retry()
    assert states(app) == {"a": "FAILED", "b": "CANCELED upstream_failed", "c": "PENDING"}


def test_retry_many_and_redrive_revive_flows(app: Windlass, jobs: Jobs):
    """J2.4, J5.7: through the same seam."""
    for verb in (app.retry_many, lambda: app.dead_letters.redrive().redriven):
        BROKEN.update("ab")
        jobs.step.bind("a").then(jobs.step.bind("c")).enqueue()
        group(jobs.step.bind("b")).then(jobs.step.bind("d")).enqueue()
        drain(app)
        BROKEN.clear()
        assert verb() == 2
        assert drain(app).succeeded == 4


def test_retry_of_a_job_outside_of_flows_reads_no_followers(app: Windlass, jobs: Jobs, monkeypatch):
    """J8.7: a job that uses none of this pays nothing."""
    from windlass.stores.plans import flow_revival

    monkeypatch.setattr(flow_revival, "revive", None)
    BROKEN.add("a")
    handle = jobs.step.bind("a").enqueue()
    drain(app)
    assert handle.retry()


def failed_heads_of_one_key(app: Windlass, jobs: Jobs):
    BROKEN.update("ab")
    keyed = jobs.step.using(business_key="k")
    handles = []
    for name in "ab":
        handles.append(jobs.step.bind(name).then(keyed.bind(f"after {name}")).enqueue())
        drain(app)
    BROKEN.clear()
    return handles


def test_followers_that_need_one_key_refuse_a_common_retry(app: Windlass, jobs: Jobs):
    """J2.4: all or nothing, with the error that names the key."""
    failed_heads_of_one_key(app, jobs)
    with pytest.raises(DuplicateBusinessKeyError, match="'k'"):
        app.retry_many()
    assert set(states(app).values()) == {"FAILED", "CANCELED upstream_failed"}


def test_a_redrive_skips_a_flow_whose_follower_needs_a_held_key(app: Windlass, jobs: Jobs):
    """J5.7: the others are re-driven."""
    first, second = failed_heads_of_one_key(app, jobs)
    BROKEN.add("c")
    third = jobs.step.bind("c").enqueue()
    drain(app)
    redrive = app.dead_letters.redrive()
    assert (redrive.selected, set(redrive.ids)) == (3, {first.id, third.id})
    assert set(redrive.skipped) == {second.id}
