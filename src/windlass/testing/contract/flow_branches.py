"""Branches: the transaction that ends a job releases those that were chosen, and guards those without a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.branches import PREDICATE_FAILED, Branch, Guard, Judgement, Judgements, PredicateError
from windlass.domain.dependencies import NOT_CHOSEN, EndedStep, Follows
from windlass.domain.ended import Effects, Ended
from windlass.domain.identity import FIRST_ID
from windlass.domain.job import Claim
from windlass.domain.states import JobStatus
from windlass.domain.transition import Transition, not_chosen
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, end
from windlass.stores.plan import Plan
from windlass.stores.plans import flow_branches, flow_checks, flows, jobs
from windlass.submission.stored_options import StoredFlow, with_flow
from windlass.testing.contract.flow_setup import (
    FOLLOW_UPS,
    FlowDraft,
    cancel,
    canceled_by,
    claims_of,
    due_times,
    finish_plan,
    retry,
    status_of,
    statuses,
    transition_of,
)
from windlass.testing.contract.workbench import StoreContract, Workbench

S = JobStatus
HOLDS: Final = Judgement(holds=True)
FAILS: Final = Judgement(holds=False)
RAISED: Final = Judgement(holds=False, error=PredicateError("ValueError: odd", "ValueError"))


class BranchedJob(NamedTuple):
    """A job with a branch of each kind, and a plain follower."""

    head: str
    main: str
    on_success: str
    on_failure: str
    value: str
    custom: str
    behind: str
    """Follows `custom`."""

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches as they are stored."""
        return (
            Branch(self.on_success, "success", description="ok"),
            Branch(self.on_failure, "failure", description="not ok"),
            Branch(self.value, "result", "shop:is_small", description="small"),
            Branch(self.custom, "custom", "shop:is_odd", description="odd"),
        )


def branched(bench: Workbench) -> BranchedJob:
    """Store a job with branches."""
    draft = FlowDraft()
    head = draft.job()
    main, on_success, on_failure = (draft.job(head, way) for way in (Follows.THEN, Follows.SUCCESS, Follows.FAILURE))
    value, custom = (draft.job(head, Follows.DECIDED, options=_guarded(about)) for about in ("value", "outcome"))
    found = BranchedJob(head, main, on_success, on_failure, value, custom, draft.job(custom))
    draft.store(bench, {head: found.branches})
    return found


def _guarded(about: str) -> str:
    return with_flow(None, StoredFlow(guard=Guard(about, "shop:is_odd")))


def finish(
    bench: Workbench,
    claim: Claim,
    judgements: Judgements,
    *,
    fails: bool = False,
    follow_ups: FollowUps = FOLLOW_UPS,
) -> Effects:
    """End a claim as the completer does after its branches were judged."""
    return bench.database.run(_finish, transition_of(bench, claim, fails=fails), judgements, follow_ups)


def _finish(
    dialect: Dialect, transition: Transition, judgements: Judgements, follow_ups: FollowUps = FOLLOW_UPS
) -> Plan[Effects]:
    yield from jobs.apply(dialect, [transition], alone=False)
    ended = Ended(transition.job_id, "shop:charge", "default", 2, transition.move, reason=transition.reason)
    return (yield from end(dialect, [ended._replace(judgements=judgements)], follow_ups))


def guarded(bench: Workbench, ids: Sequence[str]) -> set[str]:
    """Which of these jobs have to pass a guard."""
    return {one.job_id for one in bench.database.read(flow_branches.guarded_among, ids)}


class FlowBranchesContract(StoreContract):
    """Decisions and guards."""

    def test_chosen_branches_are_released_and_the_others_canceled(self, bench: Workbench) -> None:
        """J8.2, J4.3: in the transaction that ends their job; the plain chain goes on."""
        flow = branched(bench)
        effects = finish(bench, claims_of(bench)[flow.head], {flow.value: HOLDS, flow.custom: FAILS})
        assert sorted(claims_of(bench)) == sorted([flow.main, flow.on_success, flow.value])
        assert {canceled_by(bench, job) for job in (flow.on_failure, flow.custom, flow.behind)} == {
            (NOT_CHOSEN, flow.head)
        }
        assert [ended.job_id for ended in effects.canceled] == [flow.on_failure, flow.custom, flow.behind]
        assert [one.description for one in effects.branches[flow.head]] == ["ok", "small"]
        assert guarded(bench, flow) == set()

    def test_failure_chooses_branches_on_failure_and_no_value_branch(self, bench: Workbench) -> None:
        """J8.2: value predicates are about a value."""
        flow = branched(bench)
        effects = finish(bench, claims_of(bench)[flow.head], {flow.custom: HOLDS}, fails=True)
        assert sorted(claims_of(bench)) == sorted([flow.on_failure, flow.custom])
        assert {canceled_by(bench, job) for job in (flow.on_success, flow.value)} == {(NOT_CHOSEN, flow.head)}
        assert canceled_by(bench, flow.main) == ("upstream_failed", flow.head)
        assert [one.child_id for one in effects.branches[flow.head]] == [flow.on_failure, flow.custom]

    def test_failed_predicate_cancels_its_own_branch_with_the_error(self, bench: Workbench) -> None:
        """J8.2: and what is behind it; no other branch."""
        flow = branched(bench)
        finish(bench, claims_of(bench)[flow.head], {flow.value: HOLDS, flow.custom: RAISED})
        job = bench.job(flow.custom)
        assert (job.status, job.reason, job.error, job.error_class) == (
            *(S.CANCELED, PREDICATE_FAILED),
            *("ValueError: odd", "ValueError"),
        )
        assert canceled_by(bench, flow.custom)[1] == flow.head
        assert canceled_by(bench, flow.behind) == (NOT_CHOSEN, flow.head)
        assert len(due_times(bench, [flow.value, flow.on_success, flow.main])) == 3

    def test_cancel_fires_no_branch(self, bench: Workbench) -> None:
        """J8.1, J8.2."""
        flow = branched(bench)
        moved = cancel(bench, flow.head)
        assert statuses(bench, flow) == {S.CANCELED: len(flow)}
        assert moved.effects.branches == {}

    # ------------------------------------------------------------------ guards

    def test_job_that_ends_without_judgements_releases_predicate_followers_guarded(self, bench: Workbench) -> None:
        """J8.2: a lost worker cannot call them; what its failure decides by itself is decided."""
        flow = branched(bench)
        effects = finish(bench, claims_of(bench)[flow.head], {}, fails=True)
        assert sorted(claims_of(bench)) == sorted([flow.on_failure, flow.custom])
        assert guarded(bench, flow) == {flow.custom}
        assert canceled_by(bench, flow.value) == (NOT_CHOSEN, flow.head)
        assert [one.child_id for one in effects.branches[flow.head]] == [flow.on_failure]

    def test_parent_without_stored_branches_releases_decided_followers_guarded(self, bench: Workbench) -> None:
        """J8.2: as a batch does, and as the checks do for what an older version has ended."""
        flow = branched(bench)
        (claim,) = claims_of(bench).values()
        bench.database.run(finish_plan, [transition_of(bench, claim, fails=False)], ())
        step = EndedStep(flow.head, S.SUCCEEDED, frozenset(Follows), None)
        bench.database.run(flows.follow, [step])
        assert guarded(bench, flow) == {flow.value, flow.custom}
        assert len(due_times(bench, [flow.main, flow.on_success, flow.value, flow.custom])) == 4
        assert canceled_by(bench, flow.on_failure) == (NOT_CHOSEN, flow.head)

    def test_checks_release_missed_predicate_followers_guarded(self, bench: Workbench) -> None:
        """J7.5, J8.2: their predicates were never called."""
        flow = branched(bench)
        (claim,) = claims_of(bench).values()
        bench.database.run(finish_plan, [transition_of(bench, claim, fails=False)], ())
        assert bench.database.run(flow_checks.release_missed, FIRST_ID).found == 1
        assert guarded(bench, flow) == {flow.value, flow.custom}

    def test_guarded_follower_that_is_not_chosen_is_canceled_by_its_parent(self, bench: Workbench) -> None:
        """J8.2: its own attempt ends it, with what is behind it."""
        flow = branched(bench)
        finish(bench, claims_of(bench)[flow.head], {}, fails=True)
        claim = claims_of(bench)[flow.custom]
        bench.database.run(_finish, not_chosen(claim, bench.times(), NOT_CHOSEN, None, holds_key=True), {})
        assert {canceled_by(bench, job) for job in (flow.custom, flow.behind)} == {(NOT_CHOSEN, flow.head)}

    # ------------------------------------------------------------------ retry

    def test_retry_revives_branches_that_were_not_chosen_and_leaves_those_that_fired(self, bench: Workbench) -> None:
        """J2.4: they are decided anew; what fired before fires no second time."""
        flow = branched(bench)
        finish(bench, claims_of(bench)[flow.head], {flow.custom: FAILS}, fails=True)
        finish(bench, claims_of(bench)[flow.on_failure], {})
        retry(bench, flow.head)
        assert status_of(bench, flow.on_failure) is S.SUCCEEDED
        assert due_times(bench, [flow.main, flow.on_success, flow.value, flow.custom, flow.behind]) == []
        assert statuses(bench, flow) == {S.PENDING: len(flow) - 1, S.SUCCEEDED: 1}
        effects = finish(bench, claims_of(bench)[flow.head], {flow.value: FAILS, flow.custom: HOLDS})
        assert [one.child_id for one in effects.branches[flow.head]] == [flow.on_success, flow.custom]
        assert status_of(bench, flow.value) is S.CANCELED
        assert len(bench.history(flow.on_failure)) == 1

    def test_branch_that_fired_is_not_announced_again_after_a_retry(self, bench: Workbench) -> None:
        """J2.4, J5.8: the second failure finds it released."""
        flow = branched(bench)
        finish(bench, claims_of(bench)[flow.head], {flow.custom: FAILS}, fails=True)
        retry(bench, flow.head)
        effects = finish(bench, claims_of(bench)[flow.head], {flow.custom: FAILS}, fails=True)
        assert effects.branches == {}

    def test_retry_recalls_guarded_followers_that_have_not_started(self, bench: Workbench) -> None:
        """J2.4, J8.2: their parent ends anew, and decides then."""
        flow = branched(bench)
        finish(bench, claims_of(bench)[flow.head], {}, fails=True)
        retry(bench, flow.head)
        assert (due_times(bench, [flow.custom]), guarded(bench, flow)) == ([], set())
        finish(bench, claims_of(bench)[flow.head], {flow.value: FAILS, flow.custom: FAILS})
        assert canceled_by(bench, flow.custom) == (NOT_CHOSEN, flow.head)

    def test_retry_revives_a_guarded_follower_that_was_not_chosen_without_its_guard(self, bench: Workbench) -> None:
        """J2.4, J8.2: the next end of its parent decides about it."""
        flow = branched(bench)
        finish(bench, claims_of(bench)[flow.head], {}, fails=True)
        claim = claims_of(bench)[flow.custom]
        bench.database.run(_finish, not_chosen(claim, bench.times(), NOT_CHOSEN, None, holds_key=True), {})
        retry(bench, flow.head)
        assert (status_of(bench, flow.custom), guarded(bench, flow)) == (S.PENDING, set())
        finish(bench, claims_of(bench)[flow.head], {flow.value: FAILS, flow.custom: HOLDS})
        assert len(due_times(bench, [flow.custom])) == 1
