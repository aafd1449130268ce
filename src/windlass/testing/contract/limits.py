"""Limits of queues, alone and together with other gates, on every store."""

from __future__ import annotations

from windlass.domain.lanes import QUEUE, RESOURCE, passed_over_lane
from windlass.domain.transition import passed_over
from windlass.stores.plans import moves, permits
from windlass.testing.contract.gate_setup import STRIPE, GatedContract
from windlass.testing.contract.workbench import Workbench


class LimitsContract(GatedContract):
    """A queue's limit is kept by every claim, and changed while jobs run."""

    def test_a_queue_runs_no_more_than_its_limit(self, bench: Workbench) -> None:
        """J1.7: for the whole cluster, by effective priority across its levels."""
        low = bench.put(5, queue="mail", priority=1)
        high = bench.put(2, queue="mail", priority=7)
        self._limit(bench, "mail", cap=3)
        assert [claim.job_id for claim in bench.claim()] == [*high, low[0]]
        assert bench.claim() == []

    def test_the_order_over_several_queues_is_exact_around_a_limit(self, bench: Workbench) -> None:
        """J3.1, J3.4: what a limit keeps back is passed over, all else comes in its order."""
        self._limit(bench, "mail", cap=1)
        ids = [
            bench.put(queue=queue, priority=level)[0]
            for queue, level in [("mail", 9), ("mail", 8), ("web", 7), ("web", 5)]
        ]
        assert [claim.job_id for claim in bench.claim(2)] == [ids[0], ids[2]]
        assert [claim.job_id for claim in bench.claim(2)] == [ids[3]]

    def test_jobs_running_when_a_limit_is_set_count(self, bench: Workbench) -> None:
        """J1.7: changed while running; nothing is counted twice, and what left is not counted."""
        bench.put(9, queue="mail")
        first = bench.claim(4)
        self._limit(bench, "mail", cap=5)
        self._limit(bench, "mail", cap=6)
        assert self._in_use(bench, QUEUE) == 4
        assert len(bench.claim()) == 2
        for claim in first:
            assert bench.succeed(claim)
        assert self._in_use(bench, QUEUE) == 2

    def test_a_lifted_limit_lets_everything_through(self, bench: Workbench) -> None:
        """J1.7: and one set again starts from what runs."""
        self._limit(bench, "mail", cap=1)
        bench.put(5, queue="mail")
        assert len(bench.claim()) == 1
        self._limit(bench, "mail", cap=None)
        assert len(bench.claim()) == 4
        self._limit(bench, "mail", cap=5)
        assert self._in_use(bench, QUEUE) == 5

    def test_a_node_that_does_not_know_of_a_limit_respects_it(self, bench: Workbench) -> None:
        """J1.7: what it believes of queues may be a second old; the claim itself looks."""
        bench.put(5, queue="mail")
        before = bench.heads()
        self._limit(bench, "mail", cap=2)
        assert bench.claim_from(before) == []
        assert len(bench.claim()) == 2

    def test_a_job_behind_a_resource_counts_for_its_queue_too(self, bench: Workbench) -> None:
        """J3.4: several gates at once; the narrowest decides."""
        self._resource(bench, cap=3)
        self._limit(bench, "mail", cap=2)
        bench.put(5, queue="mail", lane=STRIPE)
        bench.put(5, queue="web", lane=STRIPE)
        claims = bench.claim()
        assert sorted(claim.queue for claim in claims) == ["mail", "mail", "web"]
        for claim in claims:
            assert bench.succeed(claim)
        assert self._in_use(bench, QUEUE) == self._in_use(bench, RESOURCE) == 0

    def test_a_job_passed_over_keeps_its_gates(self, bench: Workbench) -> None:
        """J6.3, J6.2: waiting for a node that knows its target does not lead around the resource."""
        self._resource(bench, cap=1)
        bench.put(2, lane=STRIPE)
        (claim,) = bench.claim()
        assert bench.apply(passed_over(claim, bench.times(), passed_over_lane(claim.lane, claim.target))) == [True]
        assert len(bench.claim()) == 1
        assert bench.claim() == []

    def test_a_node_that_does_not_know_of_a_limit_respects_it_for_lanes_too(self, bench: Workbench) -> None:
        """J1.7, J3.4: what is behind a resource counts for its queue, whatever the node believes."""
        self._resource(bench, cap=50)
        bench.put(5, queue="mail", lane=STRIPE)
        before = bench.heads()
        self._limit(bench, "mail", cap=2)
        assert len(bench.claim_from(before)) == 2
        assert self._in_use(bench, QUEUE) == 2

    def test_permits_counted_for_running_jobs_are_released_by_a_cancel(self, bench: Workbench) -> None:
        """J1.7, J6.2: its node does not know that it was counted, and reports its end anyway."""
        bench.put(2, queue="mail")
        (claim,) = bench.claim(1)
        self._limit(bench, "mail", cap=1)
        bench.database.run(moves.cancel, [claim.job_id])
        assert bench.claim() == []
        bench.database.run(permits.release, [permits.Body(claim.job_id, claim.fence)])
        assert len(bench.claim()) == 1
