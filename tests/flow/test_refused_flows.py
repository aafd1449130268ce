"""What cannot be a flow is refused where it is written or enqueued, and nothing is stored."""

from typing import Any

import pytest

from tests.engine.apps import Apps, count
from tests.flow.flow_bodies import Jobs
from windlass import (
    RESULT,
    DuplicateBusinessKeyError,
    InvalidOptionError,
    KeyConflictError,
    Windlass,
    group,
)
from windlass.domain.dependencies import MAX_FLOW_ROWS


@pytest.fixture(autouse=True)
def _nothing_is_stored(apps: Apps):
    yield
    assert {count(apps.url, table) for table in ("flow", "group")} == {0}


def test_an_empty_group_is_refused():
    """J8.3: where it is written."""
    with pytest.raises(InvalidOptionError, match="a group needs at least one member, got none"):
        group()


@pytest.mark.parametrize("value", [RESULT, RESULT["id"]], ids=repr)
def test_a_result_in_a_first_step_is_refused(app: Windlass, jobs: Jobs, value: Any):
    """J8.1: there is none yet; also in a member of a group that begins the flow."""
    for flow in (
        jobs.double.bind(value).then(jobs.double),
        group(jobs.double.bind(1), jobs.double.bind(value)).then(jobs.join),
    ):
        with pytest.raises(InvalidOptionError, match=r"RESULT is an argument of .*:double, the first step"):
            flow.enqueue()


def test_one_call_in_two_places_is_refused(app: Windlass, jobs: Jobs):
    """J8.1: a value may begin many flows, and stands in each of them once."""
    call = jobs.double.bind(1)
    for flow in (call.then(call), group(call, call).then(jobs.join), group(call, jobs.double.bind(2)).then(call)):
        with pytest.raises(InvalidOptionError, match=r"double is in two places of one flow"):
            flow.enqueue()


def test_a_follower_with_a_taken_idempotency_key_is_refused(app: Windlass, jobs: Jobs):
    """J8.1: only the head's makes a duplicate; the error names the key and its job."""
    taken = jobs.step.using(idempotency_key="k").bind("first").enqueue()
    with pytest.raises(KeyConflictError, match="'k' of a job inside a flow") as refused:
        jobs.step.bind("a").then(jobs.step.using(idempotency_key="k").bind("b")).enqueue()
    assert (refused.value.key, refused.value.holder) == ("k", taken.id)


def test_two_followers_with_one_idempotency_key_are_refused(app: Windlass, jobs: Jobs):
    """J8.1: within one flow, too."""
    keyed = jobs.step.using(idempotency_key="k")
    with pytest.raises(KeyConflictError):
        jobs.step.bind("a").then(keyed.bind("b")).then(keyed.bind("c")).enqueue()


def test_a_follower_with_a_held_business_key_is_refused(app: Windlass, jobs: Jobs):
    """J1.5: keys are taken when the flow is stored."""
    jobs.step.using(business_key="k").bind("first").enqueue()
    with pytest.raises(DuplicateBusinessKeyError):
        jobs.step.bind("a").then(jobs.step.using(business_key="k").bind("b")).enqueue()


def test_a_follower_cannot_return_an_existing_job(app: Windlass, jobs: Jobs):
    """flows §12: the existing one would not follow."""
    keyed = jobs.step.using(business_key="k", on_conflict="return_existing")
    with pytest.raises(InvalidOptionError, match="the existing job would not follow"):
        jobs.step.bind("a").then(keyed.bind("b")).enqueue()


def test_a_flow_with_too_many_jobs_is_refused(app: Windlass, jobs: Jobs):
    """J8.6: 100,000 at most."""
    members = [jobs.double.bind(n) for n in range(MAX_FLOW_ROWS)]
    with pytest.raises(InvalidOptionError, match="a flow has at most 100,000 jobs"):
        group(*members).then(jobs.join).enqueue()


def test_a_group_without_a_step_behind_it_is_refused(app: Windlass, jobs: Jobs):
    """api.md: there would be no handle."""
    with pytest.raises(InvalidOptionError, match=r"add one with then\(\)"):
        group(jobs.double.bind(1)).enqueue()


@pytest.mark.parametrize("step", [7, None, "double", len], ids=repr)
def test_an_invalid_step_is_refused_where_it_is_written(jobs: Jobs, step: Any):
    """J8.1: with what to write instead."""
    with pytest.raises(InvalidOptionError, match="a step of a flow is a job, a call, a flow or a group"):
        jobs.double.bind(1).then(step)


def test_an_unbound_job_that_takes_no_result_is_refused(jobs: Jobs):
    """J8.1: `then(job)` binds RESULT."""
    with pytest.raises(TypeError, match=r"nothing\(\)"):
        jobs.double.bind(1).then(jobs.nothing)


def test_verb_of_groups_is_refused_behind_a_job(jobs: Jobs):
    """J8.3."""
    flow = jobs.double.bind(1).then(jobs.double)
    with pytest.raises(InvalidOptionError, match="stands behind a group"):
        flow.then_always(jobs.double)


def test_jobs_of_two_applications_are_refused(apps: Apps, app: Windlass, jobs: Jobs):
    """J6.3: a flow belongs to one."""
    other = Jobs(apps())
    with pytest.raises(InvalidOptionError, match="jobs of different applications"):
        jobs.double.bind(1).then(other.double).enqueue()


def test_a_failure_step_of_a_nested_group_is_refused(app: Windlass, jobs: Jobs):
    """J8.3: its members count for the outer group; the error says what to write."""
    inner = group(jobs.double.bind(1)).then_on_failure(jobs.judge)
    with pytest.raises(InvalidOptionError, match="add a step behind it"):
        group(inner, jobs.double.bind(2)).then(jobs.join).enqueue()


def test_groups_nested_too_deep_are_refused(app: Windlass, jobs: Jobs):
    """J8.3: before anything recursive breaks."""
    nest = group(jobs.double.bind(1))
    for _ in range(60):
        nest = group(nest)
    with pytest.raises(InvalidOptionError, match="nested more than 50 deep"):
        nest.then(jobs.join).enqueue()


def test_a_part_of_a_result_is_named_by_text_or_number():
    """J8.1."""
    with pytest.raises(InvalidOptionError, match=r"RESULT\['id'\]"):
        RESULT[1.5]
    with pytest.raises(TypeError, match=r"RESULT\[0\]"):
        list(RESULT)


def test_a_result_outside_of_a_flow_is_refused(app: Windlass, jobs: Jobs):
    """J8.1: a single job has nothing before it."""
    with pytest.raises(Exception, match="RESULT"):
        jobs.double.bind(RESULT).enqueue()


def test_a_member_with_return_existing_is_refused(app: Windlass, jobs: Jobs):
    """J1.5: the existing job does not count for the group: the join would wait for ever, or lack a result."""
    jobs.step.using(business_key="k", delay=60).bind("first").enqueue()
    keyed = jobs.step.using(business_key="k", on_conflict="return_existing")
    for members in ([keyed.bind("a")], [keyed.bind("a"), jobs.step.bind("b")], [keyed.bind("a").then(jobs.step)]):
        with pytest.raises(InvalidOptionError, match="is a member of a group and has on_conflict='return_existing'"):
            group(*members).then(jobs.join).enqueue()


@pytest.mark.parametrize("policy", ["raise", "replace"])
def test_one_business_key_for_two_jobs_of_a_flow_is_refused(app: Windlass, jobs: Jobs, policy: Any):
    """J1.5: the second would replace the first, which cancels what follows it: the second."""
    keyed = jobs.step.using(business_key="k", on_conflict=policy)
    with pytest.raises(InvalidOptionError, match="of one flow have the business key 'k'"):
        keyed.bind("a").then(jobs.step.bind("b")).then(keyed.bind("c")).enqueue()


def test_a_job_is_not_replaced_by_a_flow(app: Windlass, jobs: Jobs):
    """J2.4: by one call."""
    old = jobs.step.using(delay=60).bind("old").enqueue()
    for new in (jobs.step.bind("a").then(jobs.step.bind("b")), group(jobs.step.bind("a"))):
        with pytest.raises(InvalidOptionError, match="a job is replaced by one call"):
            app.replace(old.id, new)  # type: ignore[arg-type]


def test_failure_steps_nested_deeply_are_refused(app: Windlass, jobs: Jobs):
    """flows §12: by the same limit as groups, whatever Python's."""
    nested = group(jobs.step.bind("a"))
    for _ in range(2000):
        nested = group(jobs.step.bind("a")).then_on_failure(nested)
    with pytest.raises(InvalidOptionError, match=r"nested more than|a group without a step behind it"):
        nested.enqueue()


def test_a_single_flow_is_no_list_of_calls(app: Windlass, jobs: Jobs):
    """api.md: `enqueue_many` takes a list."""
    members = group(jobs.double.bind(1))
    for single in (members, members.then(jobs.join), jobs.double.bind(1)):
        with pytest.raises(InvalidOptionError, match="enqueue_many takes a list of calls and flows"):
            app.enqueue_many(single)  # type: ignore[arg-type]
