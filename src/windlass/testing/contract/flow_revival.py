"""Retries in flows: a job that is started over brings back what its failure had canceled, not yet released."""

from __future__ import annotations

from typing import Final

import pytest

from windlass.domain.dependencies import UPSTREAM_FAILED, Follows, GroupCounts
from windlass.domain.identity import FIRST_ID
from windlass.domain.states import JobStatus
from windlass.errors import DuplicateBusinessKeyError
from windlass.stores.plans import flow_checks, flow_revival, flows, moves
from windlass.testing.contract.flow_setup import (
    FOLLOW_UPS,
    MANY,
    FlowDraft,
    assert_counted,
    cancel,
    canceled_by,
    carried_on,
    chain,
    claims_of,
    counts,
    due_times,
    finish,
    joined,
    retry,
    run_due,
    star,
    status_of,
    statuses,
)
from windlass.testing.contract.workbench import StoreContract, Workbench

S = JobStatus
KEY: Final = "order:7"


class FlowRevivalContract(StoreContract):
    """What a retry revives, and what it leaves."""

    def test_retry_revives_everything_downstream_unreleased(self, bench: Workbench) -> None:
        """J2.4, J8.1: nothing of it is due before its parent succeeds, then each runs."""
        first, second, third = chain(bench, 3)
        run_due(bench, fails=True)
        retry(bench, first)
        assert statuses(bench, [first, second, third]) == {S.PENDING: 3}
        assert due_times(bench, [second, third]) == []
        for job in (first, second, third):
            run_alone(bench, job)
        assert statuses(bench, [first, second, third]) == {S.SUCCEEDED: 3}

    def test_retry_leaves_what_was_released_or_canceled_for_another_reason(self, bench: Workbench) -> None:
        """J2.4: a follower of the failure has run, and does not run again; what a person canceled stays canceled."""
        draft = FlowDraft()
        head = draft.job()
        on_failure, then, unwanted = draft.job(head, Follows.FAILURE), draft.job(head), draft.job(head)
        draft.store(bench)
        cancel(bench, unwanted)
        run_due(bench, fails=True)
        run_due(bench)
        retry(bench, head)
        run_due(bench)
        assert list(claims_of(bench)) == [then]
        assert (status_of(bench, on_failure), len(bench.history(on_failure))) == (S.SUCCEEDED, 1)
        assert canceled_by(bench, unwanted) == ("canceled", None)

    def test_revived_followers_take_their_business_keys_again(self, bench: Workbench) -> None:
        """J2.4, J1.5: and a second failure releases them again."""
        draft = FlowDraft()
        head = draft.job()
        follower = draft.job(head, business_key=KEY)
        draft.store(bench)
        for _ in range(2):
            run_due(bench, fails=True)
            assert bench.holder(KEY) is None
            retry(bench, head)
            holder = bench.holder(KEY)
            assert holder is not None
            assert holder.id == follower

    def test_business_key_that_another_job_holds_refuses_the_whole_retry(self, bench: Workbench) -> None:
        """J2.4: nothing is changed: not the job, not its group, not another follower."""
        draft = FlowDraft()
        group = draft.group()
        head = draft.job(group=group)
        followers = [draft.job(head), draft.job(head, business_key=KEY)]
        draft.job(group)
        draft.store(bench)
        run_due(bench, fails=True)
        (other,) = bench.put(business_key=KEY)
        before = [bench.seen(job) for job in (head, *followers)]
        with pytest.raises(DuplicateBusinessKeyError) as refused:
            retry(bench, head)
        assert (refused.value.key, str(refused.value.holder)) == (KEY, other)
        assert [bench.seen(job) for job in (head, *followers)] == before
        assert counts(bench, group) == GroupCounts(1, 0, 1)
        cancel(bench, other)
        retry(bench, head)
        assert statuses(bench, [head, *followers]) == {S.PENDING: 3}

    def test_retry_of_the_last_failed_member_revives_the_join(self, bench: Workbench) -> None:
        """J8.3: not that of an earlier one; then the group ends anew, and releases the join once."""
        flow = joined(bench, 3)
        first, second, third = claims_of(bench).values()
        finish(bench, [first, second], fails=True)
        finish(bench, [third])
        retry(bench, first.job_id)
        assert (status_of(bench, flow.join), counts(bench, flow.group)) == (S.CANCELED, GroupCounts(3, 1, 1))
        retry(bench, second.job_id)
        assert (status_of(bench, flow.join), counts(bench, flow.group)) == (S.PENDING, GroupCounts(3, 1, 0))
        assert due_times(bench, [flow.join]) == []
        claims = claims_of(bench)
        finish(bench, [claims[first.job_id], claims[second.job_id]])
        assert due_times(bench, [flow.join]) == [bench.clock.micros()]
        assert_counted(bench, flow.group)

    def test_retry_before_the_group_has_ended_leaves_the_choice_open(self, bench: Workbench) -> None:
        """J8.3: followers of a failure are decided by how the group ends at last."""
        flow = joined(bench, 2)
        first, second = claims_of(bench).values()
        finish(bench, [first], fails=True)
        retry(bench, first.job_id)
        finish(bench, [second, *claims_of(bench).values()])
        assert sorted(claims_of(bench)) == sorted([flow.join, flow.always])
        assert status_of(bench, flow.on_failure) is S.CANCELED

    def test_retry_inside_a_nested_group_revives_the_outer_join(self, bench: Workbench) -> None:
        """J8.3, J2.4: the revived join is a member of the outer group, which has no failed member any more."""
        draft = FlowDraft()
        outer, inner = draft.group(), draft.group()
        member = draft.job(group=inner)
        join = draft.job(inner, group=outer)
        outer_join = draft.job(outer)
        draft.store(bench)
        run_due(bench, fails=True)
        retry(bench, member)
        assert statuses(bench, [member, join, outer_join]) == {S.PENDING: 3}
        assert (counts(bench, inner), counts(bench, outer)) == (GroupCounts(1, 0, 0), GroupCounts(1, 0, 0))
        for job in (member, join, outer_join):
            run_alone(bench, job)

    # ------------------------------------------------------------------ many rows

    def test_revival_of_many_rows_goes_in_waves_before_the_retry(self, bench: Workbench) -> None:
        """J8.6, J2.4: the job is started over last, when all of its followers are back."""
        head, *followers = star(bench, MANY)
        carried_on(bench, run_due(bench, fails=True))
        with pytest.raises(flow_revival.LargeRevivalError) as large:
            bench.database.run(moves.retry, [head], FOLLOW_UPS)
        assert statuses(bench, [head, *followers]) == {S.FAILED: 1, S.CANCELED: MANY}
        assert bench.database.run(flow_revival.revive_some, large.value.ids) == flows.MOST_ROWS
        assert statuses(bench, followers) == {S.PENDING: flows.MOST_ROWS, S.CANCELED: MANY - flows.MOST_ROWS}
        assert claims_of(bench) == {}
        retry(bench, head)
        assert statuses(bench, [head, *followers]) == {S.PENDING: 1 + MANY}
        carried_on(bench, run_due(bench))
        assert len(due_times(bench, followers)) == MANY

    def test_waves_of_a_retry_that_never_came_are_canceled_again(self, bench: Workbench) -> None:
        """J8.6, J2.4: the checks find unreleased followers of a FAILED job; the retry can be repeated."""
        head, *followers = star(bench, MANY)
        carried_on(bench, run_due(bench, fails=True))
        bench.database.run(flow_revival.revive_some, [head])
        assert bench.database.run(flow_checks.release_missed, FIRST_ID).found == 0
        bench.clock.advance(2 * flow_checks.OPERATION_IDLE_US / 1_000_000)  # its caller is gone
        checked = bench.database.run(flow_checks.release_missed, FIRST_ID)
        carried_on(bench, checked.effects)
        assert (checked.found, statuses(bench, followers)) == (1, {S.CANCELED: MANY})
        assert canceled_by(bench, followers[0]) == (UPSTREAM_FAILED, head)
        retry(bench, head)
        assert statuses(bench, followers) == {S.PENDING: MANY}

    def test_retry_of_a_member_revives_many_followers_of_its_group(self, bench: Workbench) -> None:
        """J8.3, J8.6: also if they are more than one transaction revives."""
        draft = FlowDraft()
        group = draft.group()
        member = draft.job(group=group)
        followers = [draft.job(group) for _ in range(MANY)]
        draft.store(bench)
        carried_on(bench, run_due(bench, fails=True))
        assert statuses(bench, followers) == {S.CANCELED: MANY}
        retry(bench, member)
        assert statuses(bench, followers) == {S.PENDING: MANY}
        assert counts(bench, group) == GroupCounts(1, 0, 0)
        carried_on(bench, run_due(bench))
        assert len(due_times(bench, followers)) == MANY

    def test_retry_before_a_cascade_is_carried_out_cancels_nothing_later(self, bench: Workbench) -> None:
        """J2.4, J8.6: what is left of the cascade concerns a failure that was taken back."""
        head, *followers = star(bench, MANY)
        effects = run_due(bench, fails=True)
        retry(bench, head)
        rest, _ = carried_on(bench, effects)
        assert statuses(bench, [head, *followers]) == {S.PENDING: 1 + MANY}
        carried_on(bench, run_due(bench))
        assert (len(due_times(bench, followers)), len(rest.canceled)) == (MANY, 0)

    def test_retry_before_the_cascade_of_a_group_is_carried_out_cancels_nothing_later(self, bench: Workbench) -> None:
        """J2.4, J8.6: the group has canceled nothing yet; its operation knows only that a member had failed."""
        draft = FlowDraft()
        head, group = draft.job(), draft.group()
        members = [draft.job(head, group=group) for _ in range(flows.MOST_ROWS)]
        join = draft.job(group)
        draft.store(bench)
        effects = run_due(bench, fails=True)
        assert (status_of(bench, join), len(effects.unfinished.operations)) == (S.PENDING, 1)
        retry(bench, head)
        carried_on(bench, effects)
        assert statuses(bench, [head, *members, join]) == {S.PENDING: 2 + flows.MOST_ROWS}
        assert counts(bench, group) == GroupCounts(flows.MOST_ROWS, 0, 0)


def run_alone(bench: Workbench, job: str) -> None:
    """Run what is due, which must be this job alone."""
    claims = claims_of(bench)
    assert list(claims) == [job]
    finish(bench, list(claims.values()))
