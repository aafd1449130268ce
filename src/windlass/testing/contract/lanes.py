"""Lanes.

Jobs of targets that some nodes do not know wait there, and fail after nodes have not known them for too long.
"""

from __future__ import annotations

from functools import partial

from windlass.domain.clock import from_micros
from windlass.domain.lanes import passed_over_lane
from windlass.domain.states import JobStatus
from windlass.domain.transition import passed_over
from windlass.stores.plans import unknown_targets
from windlass.testing.contract.workbench import NODE, SECOND, StoreContract, Workbench, at_once

DAY = 86_400
UNKNOWN_TARGET = "shop.next:refund"
LANE = passed_over_lane(None, UNKNOWN_TARGET)


def _knows_old(target: str) -> bool:
    return target != UNKNOWN_TARGET


class LanesContract(StoreContract):
    """What a rolling deploy leaves to the nodes that know the target."""

    def test_a_job_passed_over_waits_for_nodes_that_know_its_target(self, bench: Workbench) -> None:
        """J6.3: it is excluded from the claims of such nodes, uses up no attempt and keeps its due time."""
        (job_id,) = self._passed_over(bench)
        due = bench.job(job_id).due_at
        assert bench.heads(knows=_knows_old).heads == []
        assert bench.claim_all(knows=_knows_old).claims == []
        (head,) = bench.heads().heads
        assert (head.lane, from_micros(head.due_at)) == (LANE, due)
        (claim,) = bench.claim()
        assert (claim.job_id, claim.attempts, claim.target) == (job_id, 0, UNKNOWN_TARGET)
        assert bench.succeed(claim)
        assert bench.outcomes(job_id) == [(1, "passed_over"), (1, "succeeded")]

    def test_jobs_of_known_targets_are_claimed_before_it(self, bench: Workbench) -> None:
        """J6.3: waiting jobs of other lanes delay no job."""
        self._passed_over(bench, priority=9)
        (plain,) = bench.put(priority=0)
        assert [claim.job_id for claim in bench.claim_all(1, chunk=1, knows=_knows_old).claims] == [plain]

    def test_inside_a_lane_the_order_is_exact(self, bench: Workbench) -> None:
        """J3.1, J3.4: due time, then id; queue and lane are both served, and no job twice."""
        moved = self._passed_over(bench, count=6)
        plain = bench.put(6)
        taken: list[str] = []
        while claims := bench.claim_all(3, chunk=2).claims:
            taken += [claim.job_id for claim in claims]
        assert [job_id for job_id in taken if job_id in moved] == moved
        assert [job_id for job_id in taken if job_id in plain] == plain
        assert len(taken) == 12

    def test_a_claim_from_a_lane_never_returns_more_than_requested(self, bench: Workbench) -> None:
        """J3.3: a node's claim is bounded by its free capacity, lanes included."""
        self._passed_over(bench, count=5)
        self._passed_over(bench, count=5, queue="mail")
        bench.put(5)
        assert len(bench.claim(4)) <= 4
        assert len(bench.claim(1)) == 1

    def test_a_retried_job_of_a_lane_stays_with_nodes_that_know_its_target(self, bench: Workbench) -> None:
        """J6.3: the next attempt meets no node that does not know the target either."""
        (job_id,) = self._passed_over(bench)
        (claim,) = bench.claim()
        bench.retry(claim, delay_us=SECOND)
        bench.clock.advance(1)
        assert bench.claim_all(knows=_knows_old).claims == []
        assert [claim.job_id for claim in bench.claim()] == [job_id]

    def test_a_target_that_no_node_knows_fails_after_the_limit(self, bench: Workbench) -> None:
        """J6.3: FAILED as target_not_found, its business key free; not a microsecond before."""
        (job_id,) = self._passed_over(bench, business_key="order:7")
        bench.clock.advance(DAY - 0.000_001)
        assert self._fail_unknown(bench) == []
        bench.clock.advance(0.000_001)
        assert self._fail_unknown(bench) == [(job_id, UNKNOWN_TARGET)]
        job = bench.job(job_id)
        assert (job.status, job.reason) == (JobStatus.FAILED, "target_not_found")
        assert (job.error, job.error_class) == (f"no node knows {UNKNOWN_TARGET}", "TargetNotFoundError")
        assert (job.attempts, job.crash_count) == (0, 0)
        assert bench.holder("order:7") is None
        assert bench.heads().heads == []

    def test_the_limit_counts_from_when_it_was_passed_over(self, bench: Workbench) -> None:
        """J6.3: a job that was due long before a node met it has all the time until one comes that knows it."""
        (job_id,) = bench.put(target=UNKNOWN_TARGET)
        bench.clock.advance(3 * DAY)
        bench.beat(NODE)
        (claim,) = bench.claim()
        assert bench.apply(passed_over(claim, bench.times(), LANE)) == [True]
        assert self._fail_unknown(bench) == []
        bench.clock.advance(DAY)
        assert self._fail_unknown(bench) == [(job_id, UNKNOWN_TARGET)]

    def test_a_job_that_comes_due_later_has_its_own_time(self, bench: Workbench) -> None:
        """J6.3: the lane is old, the job is not."""
        self._passed_over(bench)
        bench.clock.advance(DAY - 1)
        bench.beat(NODE)
        (later,) = bench.put(target=UNKNOWN_TARGET)
        (claim,) = bench.claim_all(knows=_knows_old).claims
        assert bench.apply(passed_over(claim, bench.times(), LANE)) == [True]
        bench.clock.advance(1)
        assert len(self._fail_unknown(bench)) == 1
        bench.clock.advance(DAY - 1)
        assert self._fail_unknown(bench) == [(later, UNKNOWN_TARGET)]

    def test_a_node_that_knows_a_target_starts_its_limit_over(self, bench: Workbench) -> None:
        """J6.3: a node knew it recently; other targets are as unknown as before."""
        (known,) = self._passed_over(bench)
        (other,) = bench.put(target="shop:other")
        (claim,) = bench.claim_all(knows=_knows_old).claims
        assert bench.apply(passed_over(claim, bench.times(), passed_over_lane(None, "shop:other"))) == [True]
        bench.clock.advance(DAY)
        bench.database.run(unknown_targets.targets_known, {UNKNOWN_TARGET})
        assert self._fail_unknown(bench) == [(other, "shop:other")]
        bench.clock.advance(DAY)
        assert self._fail_unknown(bench) == [(known, UNKNOWN_TARGET)]

    def test_time_without_any_node_does_not_count(self, bench: Workbench) -> None:
        """J6.3: when nodes come back after an outage, those that know the target get their time."""
        (job_id,) = self._passed_over(bench)
        bench.clock.advance(3 * DAY)
        bench.database.run(unknown_targets.start_over)
        assert self._fail_unknown(bench) == []
        bench.clock.advance(DAY)
        assert self._fail_unknown(bench) == [(job_id, UNKNOWN_TARGET)]

    def test_running_jobs_do_not_fail_as_unknown(self, bench: Workbench) -> None:
        """J6.3: a node that knows the target was found in time."""
        self._passed_over(bench)
        (claim,) = bench.claim()
        bench.clock.advance(2 * DAY)
        assert self._fail_unknown(bench) == []
        assert bench.succeed(claim)

    def test_an_empty_lane_is_deleted_and_created_again(self, bench: Workbench) -> None:
        """J6.3: forgetting a lane never hides a job that enters it later."""
        self._passed_over(bench)
        assert bench.succeed(bench.claim()[0])
        bench.clock.advance(DAY)
        self._fail_unknown(bench)
        (later,) = self._passed_over(bench)
        self._fail_unknown(bench)
        assert [claim.job_id for claim in bench.claim()] == [later]

    def test_passing_over_while_the_lane_is_being_deleted_loses_no_job(self, bench: Workbench) -> None:
        """J6.3: in any order of claims, the job is found by a node that knows its target."""
        for _ in range(8):
            (unknown,) = bench.put(target=UNKNOWN_TARGET)
            (claim,) = bench.claim()
            bench.clock.advance(DAY / 2)
            transition = passed_over(claim, bench.times(), LANE)
            (won,), _ = at_once(partial(bench.apply, transition), partial(self._fail_unknown, bench))
            assert won
            (found,) = bench.claim()
            assert found.job_id == unknown
            assert bench.succeed(found)

    def test_concurrent_searches_for_unknown_targets_fail_a_job_once(self, bench: Workbench) -> None:
        """J6.3: every node looks; a job fails once, or is claimed by a node that has learnt its target."""
        ids = self._passed_over(bench, count=30)
        bench.clock.advance(2 * DAY)
        bench.beat(NODE)
        looking = partial(self._fail_unknown, bench)
        claims, *found = at_once(partial(bench.claim, 10), looking, looking)
        failed = [job for batch in [*found, self._fail_unknown(bench)] for job, _ in batch]
        assert sorted([claim.job_id for claim in claims] + failed) == sorted(ids)
        for claim in claims:
            assert bench.succeed(claim)

    def _passed_over(
        self,
        bench: Workbench,
        *,
        count: int = 1,
        queue: str = "default",
        priority: int = 2,
        business_key: str | None = None,
    ) -> list[str]:
        ids = bench.put(count, target=UNKNOWN_TARGET, queue=queue, priority=priority, business_key=business_key)
        claims = [claim for claim in bench.claim() if claim.job_id in ids]
        assert all(bench.apply(*[passed_over(claim, bench.times(), LANE) for claim in claims]))
        return ids

    def _fail_unknown(self, bench: Workbench) -> list[tuple[str, str]]:
        """Return ids and targets of the jobs that failed."""

        def error_for(target: str) -> str:
            return f"no node knows {target}"

        found = bench.database.run(unknown_targets.fail_unknown, DAY * SECOND, error_for)
        return [(job.job_id, job.target) for job in found.failed]
