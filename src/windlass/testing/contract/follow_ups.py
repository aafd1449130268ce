"""Follow-ups: jobs that are stored by the same transaction that ends another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

import pytest

from windlass.domain.dependencies import Follows
from windlass.domain.ended import Effects, Ended
from windlass.domain.identity import FIRST_ID
from windlass.domain.states import JobStatus, Move
from windlass.domain.tags import tags_of
from windlass.domain.transition import passed_over, succeeded
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp, with_payloads
from windlass.stores.plan import Plan
from windlass.stores.plans import batches, cluster, flow_checks, flows, jobs, operations, unknown_targets
from windlass.testing.contract.batches import LOADER
from windlass.testing.contract.batches import begin as begin_batch
from windlass.testing.contract.flow_branches import FAILS, RAISED, branched
from windlass.testing.contract.flow_branches import finish as judge
from windlass.testing.contract.flow_setup import (
    FOLLOW_UPS,
    assert_counted,
    chain,
    claims_of,
    finish,
    joined,
    star,
    statuses,
)
from windlass.testing.contract.flow_setup import MANY as MANY_FOLLOWERS
from windlass.testing.contract.workbench import (
    NODE,
    SECOND,
    StopError,
    StoreContract,
    Workbench,
    at_once,
    new_job,
    text_of_size,
)

DAY = 86_400
RACERS = 4
MANY = 120
"""More rows than any dialect sends one by one."""


class FollowUpsContract(StoreContract):
    """What is written along with an outcome, and only then."""

    @pytest.mark.parametrize("count", [1, 3, MANY])
    def test_jobs_that_follow_name_their_parent(self, bench: Workbench, count: int) -> None:
        """J5.5: any number of them, with tags, and in new queues."""
        (parent,) = bench.put()
        rows = [new_job("new", tags=("t",), parent_id=parent, correlation_id="c") for _ in range(count)]
        bench.database.run(jobs.follow, rows, ["new"])
        for row in rows[:3]:
            stored = bench.job(row.id)
            assert (stored.parent_id, stored.queue, stored.tags) == (UUID(parent), "new", ("t",))
            assert (stored.status, stored.correlation_id) == (JobStatus.PENDING, "c")
        assert bench.job(parent).parent_id is None
        assert {claim.job_id for claim in bench.claim()} == {parent, *(row.id for row in rows)}

    def test_an_outcome_and_its_follow_ups_are_written_together(self, bench: Workbench) -> None:
        """J4.3: in one transaction: both or neither."""
        claim, row = bench.claimed_job(), new_job()
        transition = succeeded(claim, bench.times(), None, holds_key=False)

        def both(dialect: Dialect, *, stops: bool) -> Plan[None]:
            assert (yield from jobs.apply(dialect, [transition], alone=False)) == [True]
            yield from jobs.follow(dialect, [row], [])
            if stops:
                raise StopError

        with pytest.raises(StopError):
            bench.database.run(both, stops=True)
        assert (bench.job(claim.job_id).status, bench.exists(row.id)) == (JobStatus.RUNNING, False)
        bench.database.run(both, stops=False)
        assert (bench.job(claim.job_id).status, bench.exists(row.id)) == (JobStatus.SUCCEEDED, True)

    def test_follow_ups_of_a_spent_crash_budget_are_written_in_its_transaction(self, bench: Workbench) -> None:
        """J5.5, J7.4: once, by whichever node recovers; without the follow-up the job does not fail either."""
        bench.register("doomed")
        (job_id,) = bench.put(options='{"max_retries":2}', args=text_of_size(2000), tags=("t",))
        assert len(bench.claim(node="doomed")) == 1
        bench.lose("doomed", alive=[NODE])
        with pytest.raises(StopError):
            bench.database.run(cluster.recover, 0, [_followed_by(_stop)])
        assert bench.job(job_id).status is JobStatus.RUNNING
        follower = _Follower()
        at_once(*[partial(bench.database.run, cluster.recover, 0, [_followed_by(follower)]) for _ in range(RACERS)])
        (ended,) = follower.committed(bench, parent=job_id)
        assert ended.payload is not None
        assert (ended.payload.options, ended.job_id) == ('{"max_retries":2}', job_id)
        assert (ended.status, ended.left) == (JobStatus.FAILED, JobStatus.RUNNING)
        assert (ended.payload.args, tags_of(ended.payload.tags)) == (text_of_size(2000), ("t",))
        assert ended.failure is not None
        assert (ended.attempts, ended.failure.error_class, ended.result) == (0, "WorkerLostError", None)
        assert (ended.reason, ended.node) == ("worker_lost", "doomed")

    def test_follow_ups_of_an_unknown_target_are_written_in_its_transaction(self, bench: Workbench) -> None:
        """J5.5, J6.3: the other way to fail without an attempt."""
        (job_id,) = bench.put(options="{}")
        (claim,) = bench.claim()
        assert bench.apply(passed_over(claim, bench.times(), "target:x")) == [True]
        bench.clock.advance(2 * DAY)
        waited = (DAY * SECOND, lambda target: f"no {target}")
        with pytest.raises(StopError):
            bench.database.run(unknown_targets.fail_unknown, *waited, [_followed_by(_stop)])
        assert bench.job(job_id).status is JobStatus.PENDING
        follower = _Follower()
        found = bench.database.run(unknown_targets.fail_unknown, *waited, [_followed_by(follower)])
        assert [job.job_id for job in found.failed] == [job_id]
        assert found.effects.work == {("default", 2)}
        (ended,) = follower.committed(bench, parent=job_id)
        assert ended.failure is not None
        assert (ended.job_id, ended.reason, ended.failure.error) == (job_id, "target_not_found", "no shop:charge")

    def test_large_options_do_not_come_with_the_claim(self, bench: Workbench) -> None:
        """J3.3: a waiting claim is light, whatever its callbacks carry."""
        bench.put(options=text_of_size(5000))
        (small,) = bench.put(options='{"max_retries":1}')
        assert bench.claim_all().payloads.keys() == {small}

    # ------------------------------------------------------------------ canceled followers

    @pytest.mark.parametrize("shape", ["star", "chain"])
    @pytest.mark.parametrize("count", [3, MANY_FOLLOWERS])
    def test_each_follower_that_a_cascade_cancels_is_followed_once(
        self, bench: Workbench, shape: str, count: int
    ) -> None:
        """J5.5, J8.6: in the transaction that cancels it, also if operations carry the cascade on."""
        head, *followers = star(bench, count) if shape == "star" else chain(bench, 1 + count)
        seen = _Canceled()
        effects = finish(bench, list(claims_of(bench).values()), fails=True, follow_ups=seen.follow_ups)
        seen.committed(effects)
        assert len(seen.ids) == min(count, flows.MOST_ROWS)
        while effects.unfinished:
            effects = bench.database.run(operations.carry_on, effects.unfinished, seen.follow_ups).effects
            seen.committed(effects)
        assert sorted(seen.ids) == sorted(followers)
        assert statuses(bench, [head, *followers]) == {JobStatus.FAILED: 1, JobStatus.CANCELED: count}

    def test_followers_of_a_group_that_fails_are_followed_once(self, bench: Workbench) -> None:
        """J5.5, J8.3: they are canceled because of the counts, and counted nowhere again."""
        flow, seen = joined(bench, 2), _Canceled()
        first, second = claims_of(bench).values()
        seen.committed(finish(bench, [first], fails=True, follow_ups=seen.follow_ups))
        seen.committed(finish(bench, [second], follow_ups=seen.follow_ups))
        assert seen.ids == [flow.join]
        assert_counted(bench, flow.group)

    def test_followers_that_were_not_chosen_are_followed_once(self, bench: Workbench) -> None:
        """J5.5, J8.2: those of other branches, those whose predicate failed, and all behind them."""
        flow, seen = branched(bench), _Canceled()
        claim = claims_of(bench)[flow.head]
        seen.committed(judge(bench, claim, {flow.value: FAILS, flow.custom: RAISED}, follow_ups=seen.follow_ups))
        assert sorted(seen.ids) == sorted([flow.on_failure, flow.value, flow.custom, flow.behind])

    def test_followers_that_the_checks_cancel_are_followed_once(self, bench: Workbench) -> None:
        """J5.5, J7.5: of a job and of a group that ended without follow-ups."""
        flow, (head, follower), seen = joined(bench, 1), chain(bench, 2), _Canceled()
        claims = claims_of(bench)
        finish(bench, [claims[head], claims[flow.members[0]]], fails=True, follow_ups=())
        bench.script("UPDATE windlass_group SET failed = 1")
        seen.committed(bench.database.run(flow_checks.release_missed, FIRST_ID, seen.follow_ups).effects)
        assert sorted(seen.ids) == sorted([flow.join, follower])

    def test_followers_of_a_batch_without_children_are_followed_once(self, bench: Workbench) -> None:
        """J5.5, J8.4: the end of its loading ends it."""
        (batch, *_, failed), seen = begin_batch(bench, Follows.THEN, Follows.FAILURE), _Canceled()
        chunk = batches.Chunk(batch, 0, LOADER, ())
        seen.committed(bench.database.run(batches.finish_loading, chunk, seen.follow_ups))
        assert (seen.ids, statuses(bench, [failed])) == ([failed], {JobStatus.CANCELED: 1})

    def test_followers_of_a_recounted_group_are_followed_once(self, bench: Workbench) -> None:
        """J5.5, J7.5."""
        flow, seen = joined(bench, 1), _Canceled()
        finish(bench, list(claims_of(bench).values()), fails=True, follow_ups=())
        bench.clock.advance(flow_checks.GROUP_IDLE_US / SECOND + 1)
        seen.committed(bench.database.run(flow_checks.recount, FIRST_ID, seen.follow_ups).effects)
        assert seen.ids == [flow.join]


class _Canceled:
    """Follow-ups of flows and one more, which notes canceled jobs when their transaction is committed."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.follow_ups = (FollowUp(frozenset({Move.CANCEL}), lambda _: True, self._follow), *FOLLOW_UPS)

    def _follow(self, dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        loaded = yield from with_payloads(dialect, ended)  # their rows are not gone, nor uncommitted
        assert all(job.payload is not None for job in loaded)
        return Effects(calls=tuple(partial(self.ids.append, job.job_id) for job in loaded))

    def committed(self, effects: Effects) -> None:
        """Note the jobs of a commit."""
        for call in effects.calls:
            call()


def _followed_by(plan: Callable[[Dialect, Sequence[Ended]], Plan[Effects]]) -> FollowUp:
    return FollowUp(frozenset(Move), lambda _: True, plan)


class _Follower:
    """Stores one job for each ended one, and remembers what it was given."""

    def __init__(self) -> None:
        self.given: dict[str, Ended] = {}

    def __call__(self, dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        for job in (yield from with_payloads(dialect, ended)):
            row = new_job(parent_id=job.job_id)
            self.given[row.id] = job
            yield from jobs.follow(dialect, [row], [])
        return Effects(work=frozenset((job.queue, job.priority) for job in ended))

    def committed(self, bench: Workbench, parent: str) -> list[Ended]:
        """Return what was given for jobs whose follow-up is stored: a plan may be run more than once."""
        stored = [job_id for job_id in self.given if bench.exists(job_id)]
        assert {bench.job(job_id).parent_id for job_id in stored} == {UUID(parent)}
        return [self.given[job_id] for job_id in stored]


def _stop(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    """Write something, and fail."""
    yield from jobs.follow(dialect, [new_job(parent_id=job.job_id) for job in ended], [])
    raise StopError
