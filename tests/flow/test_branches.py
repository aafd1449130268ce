"""Branches: what follows the outcome of a job, beside the plain chain."""

import re

import pytest

from tests.engine.apps import LONG, until
from tests.flow import branch_bodies
from tests.flow.branch_bodies import ASKED, BranchJobs
from tests.flow.flow_bodies import BROKEN, RAN, all_jobs
from windlass import (
    RESULT,
    Condition,
    Event,
    Job,
    JobCanceled,
    JobCompleted,
    JobDeadLettered,
    JobStatus,
    Windlass,
    WorkflowBranchTriggered,
)
from windlass.testing import adrain, drain, inline


@pytest.fixture
def jobs(app: Windlass) -> BranchJobs:
    return BranchJobs(app)


@pytest.fixture(autouse=True)
def _nothing_asked() -> None:
    ASKED.clear()


def found(app: Windlass, name: str) -> Job:
    """The job of `note` with this name."""
    return next(job for job in all_jobs(app) if job.args[0] == name)


def states(app: Windlass) -> dict[str, str]:
    """The state of every job of `note`, by its name, with the reason of a cancel."""
    notes = [job for job in all_jobs(app) if job.target.rpartition(":")[2] in ("note", "note_outcome")]
    return {job.args[0]: job.status.value + (f" {job.reason}" if job.reason else "") for job in notes}


# ---------------------------------------------------------------------- outcomes


def test_success_fires_its_branches_and_the_chain_continues(app: Windlass, jobs: BranchJobs):
    """J8.2: whether or not a branch fired; a branch may be a chain, and takes the result."""
    flow = jobs.double.bind(3).then_on_success(jobs.note.bind("ok", RESULT).then(jobs.note.bind("then")))
    flow.then_on_failure(jobs.note.bind("not ok")).then(jobs.note.bind("main", RESULT)).enqueue()
    assert drain(app).succeeded == 4
    assert sorted(RAN) == ["double 3", "main 6", "ok 6", "then"]
    assert states(app)["not ok"] == "CANCELED not_chosen"


def test_failure_fires_its_branches_and_nothing_else(app: Windlass, jobs: BranchJobs):
    """J8.2: `RESULT` is the JobResult; the branches of success are not chosen, the chain is canceled."""
    BROKEN.add("a")
    flow = jobs.step.bind("a").then_on_failure(jobs.note_outcome.bind("not ok", RESULT))
    flow.then_on_success(jobs.note.bind("ok")).then(jobs.note.bind("main")).enqueue()
    drain(app)
    assert RAN == ["a", "not ok ValueError"]
    assert (states(app)["ok"], states(app)["main"]) == ("CANCELED not_chosen", "CANCELED upstream_failed")


def test_branch_that_is_a_job_takes_the_result(app: Windlass, jobs: BranchJobs):
    """J8.1, J8.2: unbound, as a step is."""
    jobs.double.bind(3).then_on_success(jobs.double).enqueue()
    drain(app)
    assert RAN == ["double 3", "double 6"]


def test_cancel_fires_no_branch(app: Windlass, jobs: BranchJobs):
    """J8.1, J8.2."""
    flow = jobs.step.bind("a").then_on_failure(jobs.note.bind("not ok")).when(branch_bodies.always, jobs.note.bind("x"))
    assert flow.enqueue().cancel()
    assert not drain(app)
    assert (set(states(app).values()), ASKED) == ({"CANCELED upstream_canceled"}, [])


def test_expired_job_fires_no_branch(app: Windlass, jobs: BranchJobs):
    """J1.9, J8.2: treated as a cancel."""
    head = jobs.step.using(expires=app.parts.clock.now()).bind("a")
    head.then_on_failure(jobs.note.bind("not ok")).when(branch_bodies.always, jobs.note.bind("x")).enqueue()
    drain(app)
    assert (RAN, ASKED) == ([], [])
    assert set(states(app).values()) == {"CANCELED upstream_canceled"}


def test_retried_attempt_calls_no_predicate(app: Windlass, jobs: BranchJobs):
    """J8.2: only the outcome of the job counts."""
    BROKEN.add("a")
    jobs.step.using(max_retries=2).bind("a").when(branch_bodies.has_failed, jobs.note.bind("x")).enqueue()
    drain(app)
    assert (RAN, ASKED) == (["a", "a", "a", "x"], ["failed step ValueError"])


# ---------------------------------------------------------------------- predicates


def test_all_branches_whose_predicate_holds_fire_and_the_others_are_not_chosen(app: Windlass, jobs: BranchJobs):
    """J8.2: sync on a thread, coroutines awaited; not chosen is canceled because of the parent."""
    flow = jobs.double.bind(3).when_result(branch_bodies.is_small, jobs.note.bind("small", RESULT))
    flow = flow.when_result(branch_bodies.is_large, jobs.note.bind("large").then(jobs.note.bind("behind")))
    flow = flow.when_result(branch_bodies.is_even, jobs.note.bind("even"))
    flow.when(branch_bodies.always, jobs.note_outcome.bind("when", RESULT)).enqueue()
    drain(app)
    assert ASKED == ["small 6", "large 6", "even 6", "always succeeded"]
    assert RAN == ["double 3", "small 6", "even", "when succeeded"]
    assert (states(app)["large"], states(app)["behind"]) == ("CANCELED not_chosen", "CANCELED not_chosen")


def test_predicate_sees_the_value_with_its_type(app: Windlass, jobs: BranchJobs):
    """J8.2, J1.1: as the body returned it."""
    jobs.make_order.bind(7).when_result(branch_bodies.has_milk, jobs.note.bind("milk")).enqueue()
    drain(app)
    assert RAN == ["milk"]


def test_value_predicates_are_not_called_after_a_failure(app: Windlass, jobs: BranchJobs):
    """J8.2: neither they nor `otherwise` fire; predicates on the JobResult are asked."""
    BROKEN.add("a")
    flow = jobs.step.bind("a").when_result(branch_bodies.never, jobs.note.bind("value"))
    flow = flow.choose((branch_bodies.never, jobs.note.bind("case")), otherwise=jobs.note.bind("otherwise"))
    flow.when(branch_bodies.has_failed, jobs.note_outcome.bind("failed", RESULT)).enqueue()
    drain(app)
    assert ASKED == ["failed step ValueError"]
    assert RAN == ["a", "failed ValueError"]
    assert {states(app)[name] for name in ("value", "case", "otherwise")} == {"CANCELED not_chosen"}


@pytest.mark.parametrize("predicate", [branch_bodies.raises, branch_bodies.exits, branch_bodies.exits_on_the_loop])
def test_predicate_that_raises_cancels_its_own_branch_only(app: Windlass, jobs: BranchJobs, predicate):
    """J8.2, J5.3: with the sanitised error; its job has succeeded, and the other branches fire."""
    flow = jobs.double.bind(3).when_result(predicate, jobs.note.bind("broken").then(jobs.note.bind("behind")))
    handle = flow.when_result(branch_bodies.is_small, jobs.note.bind("small")).enqueue()
    assert drain(app).succeeded == 2
    assert (handle.status(), RAN) == (JobStatus.SUCCEEDED, ["double 3", "small"])
    broken = found(app, "broken")
    assert (broken.status, broken.reason) == (JobStatus.CANCELED, "predicate_failed")
    assert (broken.error or "").startswith(broken.error_class or "-")
    assert "hunter2" not in str(broken.error)
    assert states(app)["behind"] == "CANCELED not_chosen"


def test_plain_predicate_may_return_what_is_to_be_awaited(app: Windlass, jobs: BranchJobs):
    """J8.2: it holds if that is true, not because it is there."""
    jobs.double.bind(3).when_result(branch_bodies.no_later, jobs.note.bind("x")).enqueue()
    drain(app)
    assert (RAN, states(app)["x"]) == (["double 3"], "CANCELED not_chosen")


def test_truth_of_the_value_of_a_plain_predicate_is_tested_on_its_thread(app: Windlass, jobs: BranchJobs):
    """J4.2, J8.2: sync code never runs on the loop."""
    jobs.double.bind(3).when_result(branch_bodies.says_truth, jobs.note.bind("x")).enqueue()
    drain(app)
    assert (RAN, ASKED) == (["double 3", "x"], ["truth on a thread"])


def test_error_of_a_predicate_is_logged_on_one_line(app: Windlass, jobs: BranchJobs, caplog: pytest.LogCaptureFixture):
    """J8.2: its control characters reach no terminal."""
    jobs.double.bind(3).when_result(branch_bodies.raises_lines, jobs.note.bind("x")).enqueue()
    drain(app)
    (line,) = [record.getMessage() for record in caplog.records if "the predicate" in record.getMessage()]
    assert line.isprintable()


def test_choice_takes_the_first_case_that_matches(app: Windlass, jobs: BranchJobs):
    """J8.2: as written; what comes behind it is not asked."""
    small, even = (branch_bodies.is_small, jobs.note.bind("small")), (branch_bodies.is_even, jobs.note.bind("even"))
    large = (branch_bodies.is_large, jobs.note.bind("large"))
    jobs.double.bind(3).choose(large, small, even, otherwise=jobs.note.bind("otherwise")).enqueue()
    drain(app)
    assert (ASKED, RAN) == (["large 6", "small 6"], ["double 3", "small"])
    assert {states(app)[name] for name in ("large", "even", "otherwise")} == {"CANCELED not_chosen"}


def test_choice_without_a_match_takes_otherwise(app: Windlass, jobs: BranchJobs):
    """J8.2: also if a predicate failed, which cancels its own case; without `otherwise` nothing fires."""
    cases = [(branch_bodies.raises, jobs.note.bind("raises")), (branch_bodies.is_large, jobs.note.bind("large"))]
    flow = jobs.double.bind(3).choose(*cases, otherwise=jobs.note.bind("otherwise"))
    flow.choose((branch_bodies.never, jobs.note.bind("never"))).enqueue()
    drain(app)
    assert RAN == ["double 3", "otherwise"]
    assert states(app)["raises"] == "CANCELED predicate_failed"
    assert states(app)["never"] == "CANCELED not_chosen"


def test_priority_orders_evaluation_release_and_events(app: Windlass, jobs: BranchJobs):
    """J8.2, J5.8: lower first, then as written; it keeps no branch from firing."""
    fired: list[WorkflowBranchTriggered] = []
    app.on(WorkflowBranchTriggered)(fired.append)
    flow = jobs.double.bind(4).when_result(branch_bodies.is_small, jobs.note.bind("c"), description="c", priority=2)
    flow = flow.when_result(branch_bodies.is_even, jobs.note.bind("b"), description="b", priority=1)
    flow = flow.branch(Condition.success(), jobs.note.bind("d"), "d", priority=2)
    handle = flow.choose((branch_bodies.is_even, jobs.note.bind("a")), priority=-1).enqueue()
    drain(app)
    until(lambda: len(fired) == 4)
    assert ASKED == ["even 8", "even 8", "small 8"]
    assert RAN == ["double 4", "a", "b", "c", "d"]
    assert [event.description for event in fired] == ["", "b", "c", "d"]
    assert {(event.parent_id, event.job_id, event.target) for event in fired} == {
        (handle.id, handle.id, "tests.flow.flow_bodies:double")
    }
    assert [event.child_id for event in fired] == [found(app, name).id for name in "abcd"]


@pytest.mark.parametrize("broken", [False, True])
def test_events_of_branches_come_between_the_end_of_their_job_and_the_cancels(
    app: Windlass, jobs: BranchJobs, *, broken: bool
):
    """J5.8: after the commit."""
    BROKEN.update({"a"} if broken else ())
    seen: list[Event] = []
    for kind in (JobCompleted, JobDeadLettered, WorkflowBranchTriggered, JobCanceled):
        app.on(kind)(seen.append)
    jobs.step.bind("a").then_on_success(jobs.note.bind("ok")).then_on_failure(jobs.note.bind("not ok")).enqueue()
    drain(app)
    until(lambda: len(seen) == 4)
    first = JobDeadLettered if broken else JobCompleted
    assert [type(event) for event in seen[:3]] == [first, WorkflowBranchTriggered, JobCanceled]


def test_conditions_as_values(app: Windlass, jobs: BranchJobs):
    """J8.2, api.md: `branch` takes any of them."""
    flow = jobs.double.bind(3).branch(Condition.success(), jobs.note.bind("ok"))
    flow = flow.branch(Condition.failure(), jobs.note.bind("not ok"))
    flow = flow.branch(Condition.result(branch_bodies.is_small), jobs.note.bind("small"))
    flow.branch(Condition.custom(branch_bodies.has_failed), jobs.note.bind("failed")).enqueue()
    drain(app)
    assert RAN == ["double 3", "ok", "small"]


def test_branches_hang_on_the_step_that_they_are_called_on(app: Windlass, jobs: BranchJobs):
    """J8.2: not on the first one, nor on the one behind."""
    flow = jobs.double.bind(2).then(jobs.double).when_result(branch_bodies.is_small, jobs.note.bind("x", RESULT))
    flow.then(jobs.double).enqueue()
    drain(app)
    assert (ASKED, sorted(RAN)) == (["small 8"], ["double 2", "double 4", "double 8", "x 8"])


def test_flow_with_branches_is_a_value(app: Windlass, jobs: BranchJobs):
    """J8.2, api.md: every step can be continued in several ways."""
    head = jobs.double.bind(3)
    one, other = head.then_on_success(jobs.note.bind("one")), head.then_on_success(jobs.note.bind("other"))
    one.enqueue()
    drain(app)
    assert RAN == ["double 3", "one"]
    other.enqueue()
    drain(app)
    assert RAN == ["double 3", "one", "double 3", "other"]


def test_branches_of_branches(app: Windlass, jobs: BranchJobs):
    """J8.2: a branch is a flow, with branches of its own."""
    inner = jobs.double.bind(RESULT).when_result(branch_bodies.is_large, jobs.note.bind("inner"))
    jobs.double.bind(3).when_result(branch_bodies.is_small, inner).enqueue()
    drain(app)
    assert RAN == ["double 3", "double 6", "inner"]


def test_delay_of_a_branch_counts_from_its_release(app: Windlass, jobs: BranchJobs):
    """J8.1, J8.2: as of any follower."""
    jobs.double.bind(3).when_result(branch_bodies.is_small, jobs.note.using(delay=60).bind("x")).enqueue()
    drain(app)
    due = found(app, "x").due_at
    assert due is not None
    assert (due - app.parts.clock.now()).total_seconds() == 60


def test_branch_whose_signal_came_before_its_turn_is_due_when_it_is_released(app: Windlass, jobs: BranchJobs):
    """J8.2, J8.5: its timeout counts only while it waits."""
    waiting = jobs.note.bind("x").await_signal("order:7", timeout=3600)
    jobs.double.bind(3).when_result(branch_bodies.is_small, waiting).enqueue()
    assert app.signal("order:7", {"by": "ops"}) == 1
    drain(app)
    assert RAN == ["double 3", "x"]


# ---------------------------------------------------------------------- retry


def test_retry_that_succeeds_fires_what_the_failure_had_not_chosen(app: Windlass, jobs: BranchJobs):
    """J2.4: branches are decided anew; one that has fired stays as it is."""
    BROKEN.add("a")
    flow = jobs.step.bind("a").then_on_success(jobs.note.bind("ok")).then_on_failure(jobs.note.bind("not ok"))
    handle = flow.when_result(branch_bodies.yes, jobs.note.bind("value")).then(jobs.note.bind("main")).enqueue()
    drain(app)
    assert states(app) == {
        "ok": "CANCELED not_chosen",
        "not ok": "SUCCEEDED",
        "value": "CANCELED not_chosen",
        "main": "CANCELED upstream_failed",
    }
    BROKEN.clear()
    assert handle.retry()
    drain(app)
    assert set(states(app).values()) == {"SUCCEEDED"}
    assert RAN.count("not ok") == 1


def test_retry_calls_failed_predicates_again(app: Windlass, jobs: BranchJobs):
    """J2.4: what a predicate's error canceled is revived with the job."""
    BROKEN.add("a")
    handle = jobs.step.bind("a").when(branch_bodies.raises, jobs.note.bind("x")).enqueue()
    drain(app)
    assert states(app) == {"x": "CANCELED predicate_failed"}
    assert handle.retry()
    assert (found(app, "x").status, found(app, "x").error) == (JobStatus.PENDING, None)
    drain(app)
    assert states(app) == {"x": "CANCELED predicate_failed"}


# ---------------------------------------------------------------------- views and tests


def test_graph_shows_branches_with_their_labels(app: Windlass, jobs: BranchJobs):
    """J8.2: the description, else the name of the predicate."""
    flow = jobs.double.bind(3).when_result(branch_bodies.is_small, jobs.note.bind("a"), description="few of them")
    flow = flow.when_result(branch_bodies.is_large, jobs.note.bind("b")).then_on_failure(jobs.note.bind("c"))
    flow = flow.choose((branch_bodies.is_even, jobs.note.bind("d")), otherwise=jobs.note.bind("e"))
    handle = flow.then(jobs.note.bind("f")).enqueue()
    drain(app)
    graph = handle.graph()
    assert [(edge.kind, edge.label) for edge in graph.edges] == [
        *(("when", "few of them"), ("when", "is_large"), ("failure", ""), ("when", "is_even"), ("when", "otherwise")),
        ("then", ""),
    ]
    assert [node.status.value for node in graph.nodes].count("CANCELED") == 3
    assert graph.succeeded


def test_inline_mode_runs_branches(app: Windlass, jobs: BranchJobs):
    """J8.2, api.md."""
    with inline(app):
        jobs.double.bind(3).when_result(branch_bodies.is_small, jobs.note.bind("small")).enqueue()
        assert RAN == ["double 3", "small"]


def test_drain_raises_what_the_body_raised_and_not_its_predicates(app: Windlass, jobs: BranchJobs):
    """J8.2: the first error is the body's."""
    BROKEN.add("a")
    jobs.step.bind("a").when(branch_bodies.raises, jobs.note.bind("x")).enqueue()
    with pytest.raises(ValueError, match=re.escape("a is broken")):
        drain(app, raise_errors=True)


async def test_adrain_runs_branches(app: Windlass, jobs: BranchJobs):
    """J8.2: sync predicates on a thread, coroutines on this loop."""
    flow = jobs.double.bind(3).when_result(branch_bodies.is_small, jobs.note.bind("small"))
    await flow.when_result(branch_bodies.is_even, jobs.note.bind("even")).aenqueue()
    assert (await adrain(app)).succeeded == 3
    assert RAN == ["double 3", "small", "even"]


def test_worker_runs_branches(app: Windlass, jobs: BranchJobs):
    """J8.2: as a drain does."""
    flow = jobs.double.bind(3).when_result(branch_bodies.is_small, jobs.note.bind("small"))
    flow = flow.when_result(branch_bodies.is_even, jobs.note.bind("even"))
    handle = flow.when_result(branch_bodies.is_large, jobs.note.bind("large")).enqueue()
    with app.worker():
        until(lambda: handle.graph().ended, LONG)
    assert sorted(RAN) == ["double 3", "even", "small"]
    assert states(app)["large"] == "CANCELED not_chosen"
