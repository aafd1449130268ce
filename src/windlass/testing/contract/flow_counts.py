"""Groups: ended members are counted by the transaction that ends them, and decide about what follows the group."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from windlass.domain.dependencies import NOT_CHOSEN, UPSTREAM_CANCELED, UPSTREAM_FAILED, Follows, GroupCounts
from windlass.domain.ended import Unfinished
from windlass.domain.states import JobStatus
from windlass.domain.transition import released, retry_at
from windlass.stores.plans import cluster, flows
from windlass.testing.contract.flow_setup import (
    FOLLOW_UPS,
    MANY,
    NOTHING_LEFT,
    FlowDraft,
    assert_counted,
    cancel,
    canceled_by,
    carried_on,
    claims_of,
    counts,
    due_times,
    finish,
    finish_plan,
    joined,
    run_due,
    status_of,
    statuses,
)
from windlass.testing.contract.workbench import FAILURE, NODE, StoreContract, Workbench, at_once

S = JobStatus
RACERS: Final = 4
MEMBERS: Final = 24


class FlowCountsContract(StoreContract):
    """Counts of groups, and joins."""

    # ------------------------------------------------------------------ decisions

    def test_join_is_released_when_the_last_member_has_succeeded(self, bench: Workbench) -> None:
        """J8.3: and no sooner; what follows a failure is canceled then."""
        flow = joined(bench, 3)
        claims = claims_of(bench)
        for done, member in enumerate(flow.members):
            assert (counts(bench, flow.group), due_times(bench, [flow.join])) == (GroupCounts(3, done, 0), [])
            finish(bench, [claims[member]])
        assert counts(bench, flow.group) == GroupCounts(3, 3, 0)
        assert sorted(claims_of(bench)) == sorted([flow.join, flow.always])
        assert canceled_by(bench, flow.on_failure) == (NOT_CHOSEN, flow.group)

    def test_first_failure_cancels_the_join_at_once(self, bench: Workbench) -> None:
        """J8.3: the other members go on; followers of a failure, or of any end, wait until all have ended."""
        flow = joined(bench, 3)
        first, second, third = claims_of(bench).values()
        effects = finish(bench, [first], fails=True)
        assert [ended.job_id for ended in effects.canceled] == [flow.join]
        assert canceled_by(bench, flow.join) == (UPSTREAM_FAILED, flow.group)
        finish(bench, [second])
        assert due_times(bench, [flow.on_failure, flow.always]) == []
        effects = finish(bench, [third], fails=True)
        assert (effects.canceled, counts(bench, flow.group)) == ((), GroupCounts(3, 1, 2))
        assert sorted(claims_of(bench)) == sorted([flow.on_failure, flow.always])

    def test_canceled_member_counts_as_failed(self, bench: Workbench) -> None:
        """J8.3: and says so; the group completes with it."""
        flow = joined(bench, 2)
        cancel(bench, flow.members[0])
        assert canceled_by(bench, flow.join) == (UPSTREAM_CANCELED, flow.group)
        run_due(bench)
        assert counts(bench, flow.group) == GroupCounts(2, 1, 1)
        assert sorted(claims_of(bench)) == sorted([flow.on_failure, flow.always])

    def test_members_of_one_flush_are_counted_together(self, bench: Workbench) -> None:
        """J8.3: also those of several groups."""
        flows_ = [joined(bench, 5), joined(bench, 3)]
        run_due(bench)
        assert [counts(bench, flow.group) for flow in flows_] == [GroupCounts(5, 5, 0), GroupCounts(3, 3, 0)]
        assert set(claims_of(bench)) == {job for flow in flows_ for job in (flow.join, flow.always)}

    def test_nested_groups_end_from_the_inside_out(self, bench: Workbench) -> None:
        """J8.3: a join that is a member counts when it has ended; one that is canceled cancels the outer join."""
        draft = FlowDraft()
        outer, inner = draft.group(), draft.group()
        members = [draft.job(group=inner) for _ in range(2)]
        join = draft.job(inner, group=outer)
        plain = draft.job(group=outer)
        outer_join, rescue = draft.job(outer), draft.job(outer, Follows.ALWAYS)
        draft.store(bench)
        claims = claims_of(bench)
        effects = finish(bench, [claims[members[0]]], fails=True)
        assert [ended.job_id for ended in effects.canceled] == [join, outer_join]
        assert canceled_by(bench, join) == (UPSTREAM_FAILED, inner)
        assert canceled_by(bench, outer_join)[1] == outer
        assert (counts(bench, outer), due_times(bench, [rescue])) == (GroupCounts(2, 0, 1), [])
        finish(bench, [claims[plain]])
        assert list(claims_of(bench)) == [rescue]
        finish(bench, [claims[members[1]]])
        assert_counted(bench, inner)
        assert_counted(bench, outer)

    def test_cascade_counts_the_members_that_it_cancels(self, bench: Workbench) -> None:
        """J8.3: a chain before a group; a follower of any end runs, although no member ever did."""
        draft = FlowDraft()
        head, group = draft.job(), draft.group()
        members = [draft.job(head, group=group) for _ in range(3)]
        join, rescue = draft.job(group), draft.job(group, Follows.ALWAYS)
        draft.store(bench)
        run_due(bench, fails=True)
        assert statuses(bench, [*members, join]) == {S.CANCELED: 4}
        assert counts(bench, group) == GroupCounts(3, 0, 3)
        assert list(claims_of(bench)) == [rescue]

    def test_cascade_of_many_members_counts_each_of_them_once(self, bench: Workbench) -> None:
        """J8.6, J8.3: over several transactions."""
        draft = FlowDraft()
        head, group = draft.job(), draft.group()
        for _ in range(MANY):
            draft.job(head, group=group)
        join, rescue = draft.job(group), draft.job(group, Follows.ALWAYS)
        draft.store(bench)
        effects = run_due(bench, fails=True)
        assert counts(bench, group) == GroupCounts(MANY, 0, flows.MOST_ROWS)
        carried_on(bench, effects)
        assert counts(bench, group) == GroupCounts(MANY, 0, MANY)
        assert (status_of(bench, join), list(claims_of(bench))) == (S.CANCELED, [rescue])
        assert_counted(bench, group)

    # ------------------------------------------------------------------ counted once

    def test_attempt_that_ends_no_job_is_not_counted(self, bench: Workbench) -> None:
        """J8.3, J7.4: a retry, a release, and a recovery of a lost node's job."""
        flow = joined(bench, 3)
        first, second, _ = claims_of(bench).values()
        bench.database.run(finish_plan, [retry_at(first, bench.times(), FAILURE, 0)], FOLLOW_UPS)
        bench.database.run(finish_plan, [released(second, bench.times())], FOLLOW_UPS)
        bench.register("doomed")
        bench.lose(NODE, alive=["doomed"])
        bench.database.run(cluster.recover, 3, FOLLOW_UPS)
        assert (counts(bench, flow.group), due_times(bench, [flow.join])) == (GroupCounts(3, 0, 0), [])

    def test_member_of_a_lost_node_is_counted_when_it_is_given_up(self, bench: Workbench) -> None:
        """J8.3, J7.4: in the transaction of the recovery, once."""
        flow = joined(bench, 1)
        claims_of(bench)
        bench.register("other")
        bench.lose(NODE, alive=["other"])
        for _ in range(2):
            bench.database.run(cluster.recover, 0, FOLLOW_UPS)
        assert (counts(bench, flow.group), status_of(bench, flow.join)) == (GroupCounts(1, 0, 1), S.CANCELED)

    def test_outcome_that_comes_too_late_is_not_counted(self, bench: Workbench) -> None:
        """J8.3, J2.1: only the holder of the fence counts."""
        flow = joined(bench, 2)
        late, other = claims_of(bench).values()
        cancel(bench, late.job_id)
        finish(bench, [late])
        finish(bench, [other])
        finish(bench, [other])
        assert counts(bench, flow.group) == GroupCounts(2, 1, 1)

    @pytest.mark.parametrize("failing", [0, 1])
    def test_counts_are_exact_when_members_end_at_once(self, bench: Workbench, failing: int) -> None:
        """J8.3: a flush that finds the group locked notes its count and settles it after its commit; one release."""
        flow = joined(bench, MEMBERS)
        claims = list(claims_of(bench).values())

        def end_some(number: int) -> set[tuple[str, int]]:
            work: set[tuple[str, int]] = set()
            for claim in claims[number::RACERS]:
                effects = finish(bench, [claim], fails=claims.index(claim) < failing)
                rest, _ = carried_on(bench, effects)
                work |= effects.work | rest.work
            return work

        at_once(*[partial(end_some, number) for number in range(RACERS)])
        assert counts(bench, flow.group) == GroupCounts(MEMBERS, MEMBERS - failing, failing)
        assert_counted(bench, flow.group)
        expected = [flow.on_failure if failing else flow.join, flow.always]
        assert sorted(claims_of(bench)) == sorted(expected)

    def test_settlement_of_a_counted_group_changes_nothing(self, bench: Workbench) -> None:
        """J8.3: it may come twice, or after everything has been decided."""
        flow = joined(bench, 2)
        run_due(bench)
        (due,) = due_times(bench, [flow.join])
        bench.clock.advance(60)
        again = bench.database.run(flows.carry_on, Unfinished(frozenset({flow.group})))
        assert (again.work, again.canceled, again.unfinished) == (frozenset(), (), NOTHING_LEFT)
        assert due_times(bench, [flow.join]) == [due]
        assert counts(bench, flow.group) == GroupCounts(2, 2, 0)
