"""Checks of flows: what a crash or an older version has left behind is found, and put right."""

from __future__ import annotations

from windlass.domain.dependencies import GroupCounts
from windlass.domain.identity import FIRST_ID
from windlass.domain.job import Claim
from windlass.domain.states import JobStatus
from windlass.stores.plans import flow_checks, moves
from windlass.testing.contract.flow_setup import (
    MANY,
    NOTHING_LEFT,
    assert_counted,
    canceled_by,
    carried_on,
    chain,
    claims_of,
    counts,
    find_unfinished,
    finish,
    joined,
    run_due,
    star,
    status_of,
    statuses,
)
from windlass.testing.contract.workbench import SECOND, StoreContract, Workbench

S = JobStatus
FIRST = FIRST_ID
IDLE = flow_checks.GROUP_IDLE_US / SECOND + 1


class FlowChecksContract(StoreContract):
    """What one pass of the duty finds. An older version, which knows no flows, ends jobs without follow-ups."""

    def test_unreleased_follower_of_an_ended_parent_is_found(self, bench: Workbench) -> None:
        """J7.5, J8.1: released or canceled, as the parent's end says."""
        ended = {fails: chain(bench, 2) for fails in (False, True)}
        claims = claims_of(bench)
        for fails, (parent, _) in ended.items():
            finish_as_of_old(bench, claims[parent], fails=fails)
        checked = release_missed(bench)
        assert (checked.found, len(checked.effects.canceled)) == (2, 1)
        assert list(claims_of(bench)) == [ended[False][1]]
        assert canceled_by(bench, ended[True][1])[1] == ended[True][0]
        assert release_missed(bench) == flow_checks.Checked()

    def test_followers_of_a_paused_dead_letter_are_decided_as_of_a_failed_one(self, bench: Workbench) -> None:
        """J2.3, J8.1: PAUSED is how it is now, not how it ended."""
        parent, follower = chain(bench, 2)
        finish_as_of_old(bench, claims_of(bench)[parent], fails=True)
        bench.database.run(moves.pause, [parent])
        assert release_missed(bench).found == 1
        assert status_of(bench, follower) is S.CANCELED

    def test_unreleased_follower_of_a_complete_group_is_found(self, bench: Workbench) -> None:
        """J7.5, J8.3: the counts are right, but the release is missing."""
        flow = joined(bench, 1)
        finish_as_of_old(bench, claims_of(bench)[flow.members[0]])
        bench.script("UPDATE windlass_group SET succeeded = 1")
        checked = release_missed(bench)
        assert (checked.found, len(checked.effects.canceled)) == (1, 1)
        assert sorted(claims_of(bench)) == sorted([flow.join, flow.always])

    def test_followers_that_wait_for_a_live_parent_are_not_changed(self, bench: Workbench) -> None:
        """J7.5: nothing is found while nothing is wrong."""
        chain(bench, 3)
        flow = joined(bench, 2)
        run_due(bench)
        finish(bench, list(claims_of(bench).values())[:1])
        bench.clock.advance(IDLE)
        assert release_missed(bench).found == 0
        assert bench.database.run(flow_checks.recount, FIRST) == flow_checks.Checked()
        assert_counted(bench, flow.group)

    def test_stalled_group_is_counted_again_and_decided(self, bench: Workbench) -> None:
        """J7.5, J8.3: a group without a live member that still waits for one; after ten minutes, once."""
        flow = joined(bench, 3)
        first, second, third = claims_of(bench).values()
        finish_as_of_old(bench, first)
        finish_as_of_old(bench, second, fails=True)
        finish(bench, [third])
        assert bench.database.run(flow_checks.recount, FIRST).found == 0
        bench.clock.advance(IDLE)
        assert bench.database.run(flow_checks.recount, FIRST).found == 1
        assert counts(bench, flow.group) == GroupCounts(3, 2, 1)
        assert status_of(bench, flow.join) is S.CANCELED
        assert sorted(claims_of(bench)) == sorted([flow.on_failure, flow.always])
        assert bench.database.run(flow_checks.recount, FIRST).found == 0

    def test_operation_is_carried_on_once_it_is_idle(self, bench: Workbench) -> None:
        """J8.6: not while the process that wrote it goes on with it."""
        _, *followers = star(bench, MANY)
        effects = run_due(bench, fails=True)
        assert bench.database.run(flow_checks.find_unfinished) == NOTHING_LEFT
        assert release_missed(bench).found == 0
        bench.clock.advance(flow_checks.OPERATION_IDLE_US / SECOND)
        assert bench.database.run(flow_checks.find_unfinished) == NOTHING_LEFT
        bench.clock.advance(0.000_001)
        left = bench.database.run(flow_checks.find_unfinished)
        assert left == effects.unfinished
        carried_on(bench, effects._replace(unfinished=left))
        assert statuses(bench, followers) == {S.CANCELED: MANY}
        assert find_unfinished(bench) == NOTHING_LEFT


def finish_as_of_old(bench: Workbench, claim: Claim, *, fails: bool = False) -> None:
    """End a claim as a version does that knows no flows."""
    finish(bench, [claim], fails=fails, follow_ups=())


def release_missed(bench: Workbench) -> flow_checks.Checked:
    """Check the first window."""
    return bench.database.run(flow_checks.release_missed, FIRST)
