"""Flows: the transaction that ends a job releases what follows it, or cancels what is downstream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from windlass.domain.dependencies import NOT_CHOSEN, UPSTREAM_CANCELED, UPSTREAM_FAILED, EndedStep, Follows
from windlass.domain.ended import Effects, Ended
from windlass.domain.states import JobStatus
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import flows, moves
from windlass.testing.contract.flow_setup import (
    FOLLOW_UPS,
    MANY,
    NOTHING_LEFT,
    FlowDraft,
    cancel,
    canceled_by,
    carried_on,
    chain,
    claims_of,
    due_times,
    find_unfinished,
    finish,
    run_due,
    star,
    status_of,
    statuses,
)
from windlass.testing.contract.workbench import SECOND, StopError, StoreContract, Workbench

S = JobStatus
HOUR: Final = 3600 * SECOND


class FlowsContract(StoreContract):
    """Releases and cascades."""

    # ------------------------------------------------------------------ releases

    def test_follower_is_released_by_the_success_of_its_parent_and_by_nothing_else(self, bench: Workbench) -> None:
        """J8.1: all are stored at once; no claim finds a follower before its parent has succeeded."""
        first, second, third = chain(bench, 3)
        assert statuses(bench, [first, second, third]) == {S.PENDING: 3}
        claims = claims_of(bench)
        assert list(claims) == [first]
        assert (claims_of(bench), due_times(bench, [second, third])) == ({}, [])
        effects = finish(bench, [claims[first]])
        assert (set(effects.work), effects.canceled, effects.unfinished) == ({("default", 2)}, (), NOTHING_LEFT)
        assert list(claims_of(bench)) == [second]
        assert due_times(bench, [third]) == []

    def test_release_and_outcome_are_written_together(self, bench: Workbench) -> None:
        """J4.3, J8.1: both or neither."""
        first, second = chain(bench, 2)
        claim = claims_of(bench)[first]

        stopping = FOLLOW_UPS[0]._replace(plan=_follow_and_stop)
        with pytest.raises(StopError):
            finish(bench, [claim], follow_ups=(stopping,))
        assert (status_of(bench, first), due_times(bench, [second])) == (S.RUNNING, [])
        finish(bench, [claim])
        assert (status_of(bench, first), len(due_times(bench, [second]))) == (S.SUCCEEDED, 1)

    def test_follower_is_released_once(self, bench: Workbench) -> None:
        """J8.1: a second decision about the same end changes no due time, and finds no work."""
        first, second = chain(bench, 2)
        run_due(bench)
        (due,) = due_times(bench, [second])
        bench.clock.advance(60)
        assert bench.database.run(_decide_again, first) == frozenset()
        assert due_times(bench, [second]) == [due]
        run_due(bench)
        assert bench.database.run(_decide_again, first) == frozenset()
        assert (status_of(bench, second), len(bench.history(second))) == (S.SUCCEEDED, 1)

    def test_delay_counts_from_the_release_and_due_time_is_not_before(self, bench: Workbench) -> None:
        """J8.1: the later of both."""
        draft = FlowDraft()
        head, at = draft.job(), bench.clock.micros() + HOUR
        plain, delayed, timed = draft.job(head), draft.job(head, delay_us=5 * SECOND), draft.job(head, due_at=at)
        both = draft.job(head, delay_us=2 * HOUR, due_at=at)
        draft.store(bench)
        bench.clock.advance(60)
        run_due(bench)
        now = bench.clock.micros()
        assert due_times(bench, [plain, delayed, timed, both]) == [now, now + 5 * SECOND, at, now + 2 * HOUR]

    def test_paused_follower_is_released_and_stays_paused(self, bench: Workbench) -> None:
        """J2.3, J8.1: resumed before its release it still waits for its parent, after it it is due."""
        first, second = chain(bench, 2)
        for move in (moves.pause, moves.resume, moves.pause):
            bench.database.run(move, [second])
        assert due_times(bench, [second]) == []
        run_due(bench)
        assert (status_of(bench, second), len(due_times(bench, [second])), claims_of(bench)) == (S.PAUSED, 1, {})
        bench.database.run(moves.resume, [second])
        assert list(claims_of(bench)) == [second]
        assert status_of(bench, first) is S.SUCCEEDED

    def test_release_of_many_followers_is_carried_on_until_all_are_released(self, bench: Workbench) -> None:
        """J8.6: the operation is stored by the transaction that ends the parent; each follower is released once."""
        head, *followers = star(bench, MANY)
        effects = run_due(bench)
        assert len(effects.unfinished.operations) == 1
        assert find_unfinished(bench) == effects.unfinished
        released = len(due_times(bench, followers))
        assert flows.MOST_ROWS <= released < MANY
        _, rounds = carried_on(bench, effects)
        assert (len(due_times(bench, followers)), rounds, find_unfinished(bench)) == (MANY, 1, NOTHING_LEFT)
        assert sorted(claims_of(bench)) == followers
        assert status_of(bench, head) is S.SUCCEEDED

    # ------------------------------------------------------------------ cascades

    def test_failure_cancels_everything_downstream_depth_first(self, bench: Workbench) -> None:
        """J8.1: with the reason and the job whose failure it was; each branch before the next."""
        draft = FlowDraft()
        head = draft.job()
        left, right = draft.job(head), draft.job(head)
        below_left, below_right = draft.job(left), draft.job(right)
        draft.store(bench)
        effects = run_due(bench, fails=True)
        assert [ended.job_id for ended in effects.canceled] == [left, below_left, right, below_right]
        assert {ended.left for ended in effects.canceled} == {S.PENDING}
        downstream = (left, right, below_left, below_right)
        assert {canceled_by(bench, job) for job in downstream} == {(UPSTREAM_FAILED, head)}
        assert statuses(bench, downstream) == {S.CANCELED: 4}

    def test_cancel_of_a_step_cancels_what_is_behind_it_and_nothing_before(self, bench: Workbench) -> None:
        """J8.1, J2.2: what is canceled by hand has no cause; a paused follower is canceled too."""
        first, second, third, fourth = chain(bench, 4)
        bench.database.run(moves.pause, [fourth])
        effects = cancel(bench, second).effects
        assert [(ended.job_id, ended.left) for ended in effects.canceled] == [(third, S.PENDING), (fourth, S.PAUSED)]
        assert canceled_by(bench, second) == ("canceled", None)
        assert {canceled_by(bench, job) for job in (third, fourth)} == {(UPSTREAM_CANCELED, second)}
        run_due(bench)
        assert (status_of(bench, first), claims_of(bench)) == (S.SUCCEEDED, {})

    def test_cancel_of_parent_and_follower_at_once_ends_each_job_once(self, bench: Workbench) -> None:
        """J8.1, J2.2: by tag, both are found; what is behind them is canceled by the nearer one."""
        first, second, third = chain(bench, 3)
        moved = cancel(bench, first, second)
        assert [ended.job_id for ended in moved.ended] == [first, second]
        assert [ended.job_id for ended in moved.effects.canceled] == [third]
        assert canceled_by(bench, third) == (UPSTREAM_CANCELED, second)

    def test_cancel_releases_no_follower_of_any_kind(self, bench: Workbench) -> None:
        """J8.1: a cancel fires no branch."""
        draft = FlowDraft()
        head = draft.job()
        followers = [draft.job(head, follows) for follows in Follows]
        draft.store(bench)
        cancel(bench, head)
        assert statuses(bench, followers) == {S.CANCELED: len(Follows)}

    def test_follower_of_the_other_outcome_is_not_chosen(self, bench: Workbench) -> None:
        """J8.1: after success what follows a failure is canceled, with what is behind it."""
        draft = FlowDraft()
        head = draft.job()
        on_success, on_failure = draft.job(head), draft.job(head, Follows.FAILURE)
        behind = draft.job(on_failure)
        draft.store(bench)
        run_due(bench)
        assert {canceled_by(bench, job) for job in (on_failure, behind)} == {(NOT_CHOSEN, head)}
        assert list(claims_of(bench)) == [on_success]

    def test_canceled_followers_release_their_business_keys(self, bench: Workbench) -> None:
        """J8.1, J1.5: in the same transaction."""
        draft = FlowDraft()
        follower = draft.job(draft.job(), business_key="order:7")
        draft.store(bench)
        run_due(bench, fails=True)
        assert (bench.holder("order:7"), status_of(bench, follower)) == (None, S.CANCELED)

    @pytest.mark.parametrize("shape", ["star", "chain"])
    def test_cascade_of_many_rows_is_carried_on_until_all_are_canceled(self, bench: Workbench, shape: str) -> None:
        """J8.6: the operation is stored with the failure; rows that it has not reached cannot run meanwhile."""
        head, *followers = star(bench, MANY) if shape == "star" else chain(bench, 1 + MANY)
        effects = run_due(bench, fails=True)
        assert (len(effects.canceled), len(effects.unfinished.operations)) == (flows.MOST_ROWS, 1)
        assert find_unfinished(bench) == effects.unfinished
        assert claims_of(bench) == {}
        rest, rounds = carried_on(bench, effects)
        canceled = [ended.job_id for ended in (*effects.canceled, *rest.canceled)]
        assert (sorted(canceled), rounds, find_unfinished(bench)) == (sorted(followers), 1, NOTHING_LEFT)
        assert statuses(bench, followers) == {S.CANCELED: MANY}
        assert canceled_by(bench, followers[-1]) == (UPSTREAM_FAILED, head)

    def test_operation_that_two_processes_carry_on_is_carried_out_once(self, bench: Workbench) -> None:
        """J8.6: the second one finds nothing."""
        star(bench, MANY)
        effects = run_due(bench, fails=True)
        first = bench.database.run(flows.carry_on, effects.unfinished)
        second = bench.database.run(flows.carry_on, effects.unfinished)
        assert (len(first.canceled), len(second.canceled)) == (MANY - flows.MOST_ROWS, 0)


def _follow_and_stop(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    yield from FOLLOW_UPS[0].plan(dialect, ended)
    raise StopError


def _decide_again(dialect: Dialect, parent: str) -> Plan[frozenset[tuple[str, int]]]:
    step = EndedStep(parent, S.SUCCEEDED, frozenset({Follows.THEN}), None)
    return (yield from flows.follow(dialect, [step])).work
