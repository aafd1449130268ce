"""The oracle on facts made by hand: it finds each kind of wrong, and leaves alone what only looks like it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.cases import (
    JOB,
    OTHER,
    SOUND,
    A,
    B,
    attempt,
    done,
    facts,
    gate,
    hot,
    job,
    killed,
    leased,
    publishing,
    run,
    step,
)
from tests.chaos.facts import Facts, FlowRow, HandoffRow, Orphan
from tests.chaos.oracle import AT_ANY_MOMENT, AT_THE_END, judge
from tests.chaos.pipelines import Order
from tests.chaos.witness import Accepted, Canceled, Taken

ORDER = Order("orders", 1, 1)
LOST_THEN_DONE = (attempt(1, "lost", entered=False), attempt(3, "succeeded", B))


def rules(judged: Facts) -> set[str]:
    return {violation.rule for violation in judge(judged)}


def handed_over(later_start: float, lease_until: float, first_ended: float | None = 30) -> Facts:
    """Claim 1 ran on A from 10 on; claim 3 ran on B, and succeeded."""
    runs = [run(1, A, 10, first_ended), run(3, B, later_start, later_start + 1)]
    leases = [leased(A, 0, lease_until), leased(B, 0, 100)]
    return facts(account={"runs": runs, "leases": leases}, tables={"done": (done(fence=3),), "history": LOST_THEN_DONE})


def test_a_correct_run_has_no_violations():
    """J7.2: the oracle has nothing against a job that ran once and succeeded."""
    assert judge(SOUND) == []


def test_an_execution_that_published_what_it_had_to_is_found_sound():
    """P7.1: so is one that died of the line that had to fail."""
    of_pipelines = {"executions_end_as_planned", "published_items_are_admitted_once"}
    assert rules(publishing(ORDER, result=0)) & of_pipelines == set()
    dead = publishing(Order("orders", 1, 1, hopeless=0), status="DLQ", reason="retry_exhausted", admitted=0)
    assert rules(dead) & of_pipelines == set()


def test_a_step_may_run_again_after_a_failure_or_a_lost_claim():
    """P4.4: nothing of either was stored; a worker that stood still may enter the step under the claim it has lost."""
    of_pipeline = {JOB: job(target="pipeline/orders@1#0")}
    lost = {"runs": [], "steps": [step(1), step(3, started=12, ended=13)]}
    tables = {"jobs": of_pipeline, "done": (done(fence=3),), "history": LOST_THEN_DONE}
    leases = [leased(A, 0, 11.5), leased(B, 0, 100)]
    assert judge(facts(account={**lost, "leases": leases}, tables=tables)) == []
    woken = [step(3, node=B, started=12, ended=13), step(1, started=14, ended=15, how="CancelledError")]
    assert judge(facts(account={**lost, "steps": woken, "leases": leases}, tables=tables)) == []
    retried = {"runs": [], "steps": [step(1, how="ConnectionError"), step(1, attempt=2, started=12, ended=13)]}
    assert judge(facts(account=retried, tables={"jobs": of_pipeline})) == []


WRONG: dict[str, tuple[Facts, str]] = {
    "accepted, and unknown": (
        facts(account={"accepted": [Accepted(OTHER, None, 1)]}),
        "every_accepted_job_ends_once",
    ),
    "never ended": (
        facts(tables={"done": (), "hot": (hot("PENDING", 2, None),)}),
        "every_accepted_job_ends_once",
    ),
    "entered twice by one claim": (
        facts(account={"runs": [run(1, A, 10, 11), run(1, A, 12, 13)]}),
        "a_claim_is_entered_once",
    ),
    "ended and alive": (facts(tables={"hot": (hot(),)}), "no_job_is_two_things_at_once"),
    "ended twice": (
        facts(tables={"history": (attempt(1), attempt(3)), "done": (done(fence=3),)}),
        "an_outcome_is_written_once_by_its_holder",
    ),
    "the result of a claim that was lost": (
        facts(tables={"done": (done(fence=3, result=[1]),), "history": LOST_THEN_DONE}),
        "an_outcome_is_written_once_by_its_holder",
    ),
    "ran again after its end": (
        facts(account={"runs": [run(), run(3, B, 40, 41)], "leases": []}),
        "an_outcome_is_written_once_by_its_holder",
    ),
    "two runs at once under a live lease": (
        handed_over(20, lease_until=25),
        "runs_overlap_only_after_a_lost_lease",
    ),
    "a body that never ended, on a worker that lives": (
        handed_over(20, lease_until=25, first_ended=None),
        "runs_overlap_only_after_a_lost_lease",
    ),
    "given up while it held its lease": (
        facts(account={"taken": [Taken(A, 50)]}),
        "no_node_is_given_up_while_it_holds_its_lease",
    ),
    "an attempt too many": (facts(tables={"done": (done(attempts=2),)}), "attempts_counted_are_attempts_completed"),
    "a success that was never entered": (facts(account={"runs": []}), "attempts_counted_are_attempts_completed"),
    "a success of a body that raised": (
        facts(account={"runs": [run(how="ValueError")]}),
        "attempts_counted_are_attempts_completed",
    ),
    "a claim without history": (
        facts(account={"runs": [run(1, B), run(3)]}, tables={"done": (done(fence=3),), "history": (attempt(3),)}),
        "every_claim_leaves_one_row_of_history",
    ),
    "dead without having failed enough": (
        facts(
            account={"runs": [run(how="ValueError")]},
            tables={
                "jobs": {JOB: job(options={"max_retries": 2})},
                "done": (done("FAILED", reason="retry_exhausted"),),
                "history": (attempt(1, "failed"),),
            },
        ),
        "dead_letters_have_a_real_cause",
    ),
    "dead of a cause that nothing here has": (
        facts(
            account={"runs": [run(how="ValueError")]},
            tables={"done": (done("FAILED", reason="target_not_found"),), "history": (attempt(1, "failed"),)},
        ),
        "dead_letters_have_a_real_cause",
    ),
    "dead of lost workers, too soon": (
        facts(
            account={"runs": [run(ended=None, how=None)]},
            tables={
                "done": (done("FAILED", attempts=0, reason="worker_lost", crash_count=4),),
                "history": (attempt(1, "lost"),),
            },
        ),
        "dead_letters_have_a_real_cause",
    ),
    "dead without an envelope": (
        facts(
            account={"runs": [run(how="ValueError")]},
            tables={
                "done": (done("FAILED", reason="retry_exhausted"),),
                "history": (attempt(1, "failed"),),
                "dead_letters": frozenset(),
            },
        ),
        "dead_letters_are_the_failed_jobs",
    ),
    "an envelope of the living": (
        facts(tables={"dead_letters": frozenset({JOB})}),
        "dead_letters_are_the_failed_jobs",
    ),
    "nobody's": (facts(orphans=(Orphan(JOB, 1, 40.0),)), "nothing_runs_without_a_lease"),
    "too short": (facts(ended=44), "the_run_outlasts_three_leases"),
    "one key, two jobs": (
        facts(
            account={"accepted": [Accepted(JOB, "k", 1)]},
            tables={"keys": {"k": OTHER}},
        ),
        "a_key_names_one_job",
    ),
    "a business key of the dead": (facts(tables={"live_keys": {"customer-1": JOB}}), "a_key_names_one_job"),
    "canceled in vain": (facts(account={"canceled": [Canceled(JOB, 5)]}), "what_was_canceled_stays_canceled"),
    "no callback": (
        facts(tables={"jobs": {JOB: job(options={"on_success": {}})}}),
        "callbacks_follow_once",
    ),
    "in use by nobody": (facts(tables={"gates": (gate(5, in_use=1),)}), "permits_return_to_zero"),
    "permits held by nobody": (facts(tables={"permits": 1}), "permits_return_to_zero"),
    "a follower of what failed": (
        facts(
            account={"runs": [run(), run(job=OTHER)]},
            tables={
                "jobs": {JOB: job(), OTHER: job(OTHER)},
                "done": (done("FAILED", reason="retry_exhausted"), done(id=OTHER)),
                "flow": (FlowRow(JOB, None, None, None), FlowRow(OTHER, JOB, 1, None)),
            },
        ),
        "followers_run_after_the_end_they_follow",
    ),
    "a join that was canceled though its members succeeded": (
        facts(
            tables={
                "jobs": {JOB: job(), OTHER: job(OTHER)},
                "done": (done(), done("CANCELED", 0, 0, id=OTHER)),
                "flow": (FlowRow(JOB, None, None, "group"), FlowRow(OTHER, "group", 1, None)),
            },
        ),
        "followers_end_as_their_parents_say",
    ),
    "a result that is not that of its items": (
        publishing(ORDER, result=7),
        "executions_end_as_planned",
    ),
    "a reject that is not there": (
        publishing(Order("orders", 1, 2, rejected=[1]), result=0),
        "executions_end_as_planned",
    ),
    "dead of nothing": (
        publishing(ORDER, status="DLQ", reason="retry_exhausted", admitted=0),
        "executions_end_as_planned",
    ),
    "alive though a line has failed for good": (
        publishing(Order("orders", 1, 1, hopeless=0), result=0),
        "executions_end_as_planned",
    ),
    "never asked for": (
        replace(publishing(ORDER, result=0), orders={}),
        "executions_end_as_planned",
    ),
    "published, and not admitted": (publishing(ORDER, result=0, admitted=0), "published_items_are_admitted_once"),
    "published twice": (publishing(ORDER, result=0, admitted=2), "published_items_are_admitted_once"),
    "still in the backlog": (
        publishing(ORDER, result=0, handoffs=(HandoffRow("h0", "books", f"{JOB}:0", JOB, "WAITING", None),)),
        "published_items_are_admitted_once",
    ),
    "an item of nobody": (publishing(ORDER, result=0, handoffs=()), "published_items_are_admitted_once"),
    "published by what has failed": (
        publishing(Order("orders", 1, 1, hopeless=0), status="DLQ", reason="retry_exhausted"),
        "published_items_are_admitted_once",
    ),
    "a finished step that runs again": (
        facts(account={"steps": [step(1), step(3, started=12, ended=13)]}),
        "steps_run_again_only_after_a_failure_or_a_lost_claim",
    ),
    "a step entered twice by one claim": (
        facts(account={"steps": [step(how="Error"), step(started=12, ended=13)]}),
        "a_step_is_entered_once_for_each_claim",
    ),
    "left by itself": (facts(odd_exits=("worker 7 ended by itself with 1",)), "processes_leave_in_good_order"),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_violation_is_found_under_its_rule(name: str):
    """J7.2, J7.3, J7.4: each invariant has facts that break it."""
    judged, rule = WRONG[name]
    assert rule in rules(judged)


def test_every_check_has_facts_that_break_it():
    """J7.2: a check that cannot fail judges nothing."""
    names: list[Callable[..., object]] = [*AT_ANY_MOMENT, *AT_THE_END]
    tested_elsewhere = {"permits_stay_below_their_cap"}  # tests/chaos/test_permits.py
    assert {check.__name__ for check in names} - tested_elsewhere == {rule for _, rule in WRONG.values()}


def test_two_runs_may_overlap_once_the_lease_of_the_first_has_run_out():
    """J7.3: a stalled node's body goes on after another node has taken the job."""
    assert judge(handed_over(20, lease_until=19.9)) == []


def test_a_body_that_starts_late_is_judged_by_the_lease_its_claim_had_at_the_other_start():
    """J7.3: a node that stalled between claim and body enters the body when it wakes."""
    late = facts(
        account={"runs": [run(1, A, 40, 41), run(3, B, 20, 50)], "leases": [leased(A, 0, 15), leased(B, 0, 100)]},
        tables={"done": (done(fence=3),), "history": LOST_THEN_DONE},
    )
    assert judge(late) == []


def test_the_lease_that_counts_is_that_of_the_name_under_which_was_claimed():
    """J7.3: a node that lost its lease goes on under another name, and may enter an old claim under it."""
    renamed = f"{A}2"
    account = {
        "runs": [run(1, renamed, 21, 40), run(3, B, 20, 30)],
        "leases": [leased(A, 0, 15), leased(renamed, 16, 100), leased(B, 0, 100)],
    }
    assert judge(facts(account=account, tables={"done": (done(fence=3),), "history": LOST_THEN_DONE})) == []


def test_a_killed_worker_runs_nothing_any_more():
    """P9.C5: its lease may still hold, but its bodies are over."""
    account = {
        "runs": [run(1, A, 10, None, None), run(3, B, 20, 21)],
        "leases": [leased(A, 0, 25), leased(B, 0, 100)],
        "faults": [killed(A, 15)],
    }
    judged = facts(account=account, tables={"done": (done(fence=3),), "history": LOST_THEN_DONE})
    assert "runs_overlap_only_after_a_lost_lease" not in rules(judged)


def test_a_later_heartbeat_may_promise_less_than_an_earlier_one():
    """J7.2: the interval follows the load, and so does the lease."""
    runs = [run(1, A, 10, 30), run(3, B, 20, 21)]
    leases = [leased(A, 0, 100), leased(A, 5, 15), leased(B, 0, 100)]
    judged = facts(
        account={"runs": runs, "leases": leases}, tables={"done": (done(fence=3),), "history": LOST_THEN_DONE}
    )
    assert judge(judged) == []


def test_jobs_of_one_business_key_never_run_concurrently():
    """J1.5: unique among live jobs."""
    tables = {
        "jobs": {JOB: job(business_key="c"), OTHER: job(OTHER, business_key="c")},
        "done": (done(), done(id=OTHER)),
        "history": (attempt(), attempt(job=OTHER, node=B)),
    }
    account = {
        "runs": [run(started=10, ended=20), run(1, B, 15, 25, job=OTHER)],
        "leases": [leased(A, 0, 100), leased(B, 0, 100)],
        "accepted": [Accepted(JOB, None, 1), Accepted(OTHER, None, 2)],
    }
    (found,) = judge(facts(account=account, tables=tables))
    assert (found.rule, found.job) == ("runs_overlap_only_after_a_lost_lease", OTHER)
    assert JOB in str(found)


def test_a_process_job_may_time_out_before_its_process_was_up():
    """J4.5: starting the process counts; nothing else may fail without having been entered."""
    timed_out = attempt(1, "failed", error_class="JobTimeoutError")
    tables = {"done": (done("FAILED", reason="retry_exhausted", result=None),), "history": (timed_out,)}
    elsewhere = {JOB: job(options={"executor": "process", "timeout": 1})}
    assert judge(facts(account={"runs": []}, tables={**tables, "jobs": elsewhere})) == []
    assert rules(facts(account={"runs": []}, tables=tables)) == {"attempts_counted_are_attempts_completed"}
