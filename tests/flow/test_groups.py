"""Groups: members run side by side, the step behind them gets their results, in order."""

from typing import Any

import pytest

from tests.engine.apps import LONG, Apps, query, until
from tests.flow.flow_bodies import BROKEN, RAN, Jobs, all_jobs, id_of, raises, run_one, says_no, states
from windlass import RESULT, JobStatus, Windlass, group
from windlass.domain.clock import VirtualClock
from windlass.stores.plans import flows
from windlass.testing import drain


def test_the_step_behind_a_group_gets_the_results_in_order(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J8.3: whatever the order in which members end."""
    members = [jobs.double.using(delay=5 - n).bind(n) for n in range(5)]
    handle = group(*members).then(jobs.join.bind(RESULT)).enqueue()
    for _ in range(5):
        clock.advance(1)
        drain(app)
    assert handle.result() == [0, 2, 4, 6, 8]
    assert RAN[:5] == ["double 4", "double 3", "double 2", "double 1", "double 0"]


def test_a_group_of_one_gives_a_list(app: Windlass, jobs: Jobs):
    """J8.3: always a list."""
    handle = group(jobs.double.bind(1)).then(jobs.join).enqueue()
    drain(app)
    assert handle.result() == [2]


def test_nested_groups_give_nested_lists(app: Windlass, jobs: Jobs):
    """J8.3: members of inner groups are counted for the outer one."""
    inner = group(jobs.double.bind(1), group(jobs.double.bind(2)))
    handle = group(jobs.double.bind(0), inner, jobs.double.bind(3), jobs.double.bind(4)).then(jobs.join).enqueue()
    drain(app)
    assert handle.result() == [0, [2, [4]], 6, 8]


def test_chains_are_members(app: Windlass, jobs: Jobs):
    """J8.3: the last step of a member counts."""
    member = jobs.double.bind(1).then(jobs.double).then(jobs.double)
    handle = group(member, jobs.double.bind(5)).then(jobs.join).enqueue()
    drain(app)
    assert handle.result() == [8, 10]


def test_a_group_with_a_step_of_its_own_is_a_member(app: Windlass, jobs: Jobs):
    """J8.3: the inner join counts for the outer group."""
    inner = group(jobs.double.bind(1), jobs.double.bind(2)).then(jobs.join)
    handle = group(inner, jobs.double.bind(3)).then(jobs.join).enqueue()
    drain(app)
    assert handle.result() == [[2, 4], 6]


def test_a_group_may_follow_a_group(app: Windlass, jobs: Jobs):
    """J8.3: every member of the second gets the results of the first."""
    handle = group(jobs.double.bind(1), jobs.double.bind(2)).then(group(jobs.join, jobs.join)).then(jobs.join).enqueue()
    drain(app)
    assert handle.result() == [[2, 4], [2, 4]]


def test_a_group_may_follow_a_job(app: Windlass, jobs: Jobs):
    """J8.3: fan-out; the handle is that of the first job."""
    flow = jobs.double.bind(1).then(group(jobs.double, jobs.double, jobs.double.bind(7))).then(jobs.join)
    handle = flow.enqueue()
    drain(app)
    assert handle.result() == 2
    assert all_jobs(app)[-1].result == [4, 4, 14]


def test_members_of_a_group_behind_a_job_wait_for_it(app: Windlass, jobs: Jobs):
    """J8.3: all are released together."""
    jobs.step.bind("a").then(group(jobs.step.bind("b"), jobs.step.bind("c"))).then(jobs.join).enqueue()
    run_one(app)
    assert RAN == ["a"]
    drain(app)
    assert RAN == ["a", "b", "c", "join"]


def test_the_first_failed_member_cancels_the_join_and_not_the_other_members(
    app: Windlass, jobs: Jobs, clock: VirtualClock
):
    """J8.3: at once; members that still run or wait are left alone."""
    BROKEN.add("b")
    handle = group(jobs.step.bind("b"), jobs.step.using(delay=60).bind("a")).then(jobs.join).enqueue()
    drain(app)
    assert handle.status() is JobStatus.CANCELED
    assert app.get(handle.id).reason == "upstream_failed"
    clock.advance(60)
    drain(app)
    assert states(app) == {"b": "FAILED", "a": "SUCCEEDED"}
    assert "join" not in RAN


def test_a_canceled_member_cancels_the_join_and_what_follows_it(app: Windlass, jobs: Jobs):
    """J8.3, J2.2."""
    handle = (
        group(jobs.step.bind("a"), jobs.step.bind("b")).then(jobs.step.bind("c")).then(jobs.step.bind("d")).enqueue()
    )
    assert app.cancel(id_of(app, "a"))
    assert app.get(handle.id).reason == "upstream_canceled"
    drain(app)
    assert states(app) == {
        "a": "CANCELED canceled",
        "b": "SUCCEEDED",
        "c": "CANCELED upstream_canceled",
        "d": "CANCELED upstream_canceled",
    }


def test_a_member_that_fails_in_the_middle_of_its_chain_cancels_the_join(app: Windlass, jobs: Jobs):
    """J8.3: its canceled last step counts."""
    BROKEN.add("a")
    member = jobs.step.bind("a").then(jobs.step.bind("b")).then(jobs.step.bind("c"))
    handle = group(member, jobs.step.bind("d")).then(jobs.join).enqueue()
    drain(app)
    assert (handle.status(), app.get(handle.id).reason) == (JobStatus.CANCELED, "upstream_failed")
    assert states(app)["c"] == "CANCELED upstream_failed"


def test_then_always_gets_job_results_once_all_have_ended(app: Windlass, jobs: Jobs):
    """J8.3: a canceled member is neither succeeded nor failed."""
    BROKEN.add("b")
    members = [jobs.step.bind("a"), jobs.step.bind("b"), jobs.step.using(delay=60).bind("c")]
    handle = group(*members).then_always(jobs.judge.bind(RESULT)).enqueue()
    drain(app)
    assert handle.status() is JobStatus.PENDING
    assert app.cancel(id_of(app, "c"))
    drain(app)
    assert handle.result() == ["succeeded: a", "failed: ValueError: b is broken", "neither: None"]


def test_then_always_gives_job_results_whatever_the_annotation(app: Windlass, jobs: Jobs):
    """J8.3: there may be no values."""

    handle = group(jobs.step.bind("a")).then_always(app.job(count_succeeded)).enqueue()
    drain(app)
    assert handle.result() == 1


def count_succeeded(results) -> int:
    return sum(one.succeeded for one in results)


def test_then_on_failure_of_a_group_fires_once_when_all_have_ended(app: Windlass, jobs: Jobs, clock: VirtualClock):
    """J8.3: not with the first failure, and not for each."""
    BROKEN.update("ab")
    members = [jobs.step.bind("a"), jobs.step.bind("b"), jobs.step.using(delay=60).bind("c")]
    flow = group(*members).then_on_failure(jobs.judge.bind(RESULT)).then(jobs.join)
    handle = flow.enqueue()
    drain(app)
    assert (handle.status(), RAN.count("judge")) == (JobStatus.CANCELED, 0)
    clock.advance(60)
    drain(app)
    assert RAN.count("judge") == 1


def test_then_on_failure_is_canceled_when_all_succeed(app: Windlass, jobs: Jobs):
    """J8.3: as not chosen; the main line goes on."""
    handle = group(jobs.step.bind("a")).then_on_failure(jobs.step.bind("alarm")).then(jobs.join).enqueue()
    drain(app)
    assert handle.result() == ["a"]
    assert states(app)["alarm"] == "CANCELED not_chosen"


def cleaned_up(jobs: Jobs, prefix: str) -> Any:
    """A step, then a nested group with every kind of follower."""
    inner = group(jobs.step.bind(f"{prefix} inner")).then_always(jobs.step.bind(f"{prefix} inner always"))
    outer = group(inner, jobs.step.bind(f"{prefix} member")).then_on_failure(jobs.step.bind(f"{prefix} on failure"))
    return jobs.step.bind(prefix).then(outer.then_always(jobs.step.bind(f"{prefix} always")))


@pytest.mark.parametrize("most", [2, flows.MOST_ROWS], ids=["in parts", "at once"])
@pytest.mark.parametrize("predicate", [says_no, raises])
def test_group_in_a_branch_that_is_not_chosen_runs_nothing(
    app: Windlass, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, predicate: Any, most: int
):
    """J8.2, J8.3: neither `then_always` nor `then_on_failure`: no member of it was to run."""
    monkeypatch.setattr(flows, "MOST_ROWS", most)
    head = jobs.step.bind("head").when_result(predicate, cleaned_up(jobs, "predicate"))
    head.then_on_failure(cleaned_up(jobs, "failure")).enqueue()
    drain(app)
    assert RAN == ["head"]
    head_of_branch = states(app).pop("predicate")
    assert head_of_branch in {"CANCELED not_chosen", "CANCELED predicate_failed"}
    assert set(states(app).values()) == {"SUCCEEDED", "CANCELED not_chosen", head_of_branch}


def test_group_in_a_branch_that_is_chosen_after_a_retry_runs(app: Windlass, jobs: Jobs):
    """J8.2, J2.4: what its failure did not choose comes back with its groups and what follows them."""
    BROKEN.add("head")
    jobs.step.using(max_retries=0).bind("head").then_on_success(cleaned_up(jobs, "success")).enqueue()
    drain(app)
    assert RAN == ["head"]
    BROKEN.clear()
    assert app.retry(id_of(app, "head"))
    drain(app)
    assert {name for name, state in states(app).items() if state != "SUCCEEDED"} == {"success on failure"}
    assert RAN[-1] == "success always"


def test_the_handle_of_a_group_with_a_failure_step_alone_is_that_step(app: Windlass, jobs: Jobs):
    """api.md: the step behind the group."""
    BROKEN.add("a")
    handle = group(jobs.step.bind("a")).then_on_failure(jobs.judge).enqueue()
    drain(app)
    assert handle.result() == ["failed: ValueError: a is broken"]


def test_a_join_without_results_reads_none(app: Windlass, jobs: Jobs):
    """flows §6: only what a mark asks for."""
    handle = group(jobs.large.bind(50_000), jobs.double.bind(1)).then(jobs.step.bind("after")).enqueue()
    drain(app)
    assert handle.result() == "after"


def test_parent_id_is_none_behind_a_group(app: Windlass, jobs: Jobs):
    """flows §12: a group is no job."""
    handle = group(jobs.double.bind(1)).then(jobs.join).enqueue()
    assert (app.get(handle.id).parent_id, app.get(handle.id).batch_id) == (None, None)


def test_an_idempotency_key_of_the_join_makes_the_group_a_duplicate(app: Windlass, apps: Apps, jobs: Jobs):
    """J8.1: the key of the job whose handle is returned."""
    flow = group(jobs.double.bind(1), jobs.double.bind(2)).then(jobs.join.using(idempotency_key="once").bind(RESULT))
    assert [flow.enqueue().duplicate for _ in range(2)] == [False, True]
    assert query(apps.url, "SELECT count(*) FROM windlass_job") == [(3,)]


@pytest.mark.parametrize("size", [1, 40])
def test_workers_join_a_group_once(apps: Apps, size: int):
    """J8.3: members end on several slots at the same time."""
    app = apps()
    jobs = Jobs(app)
    with app.worker(concurrency=8):
        handles = app.enqueue_many(
            [group(*(jobs.double.bind(n) for n in range(size))).then(jobs.join) for _ in range(5)]
        )
        assert [handle.result(timeout=LONG) for handle in handles] == [[2 * n for n in range(size)]] * 5
        until(lambda: query(apps.url, "SELECT count(*) FROM windlass_hot") == [(0,)])
    assert RAN.count("join") == 5
    counts = query(apps.url, "SELECT total, succeeded, failed FROM windlass_group")
    assert counts == [(size, size, 0)] * 5
