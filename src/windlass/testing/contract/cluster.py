"""The cluster: leases, lost nodes, and the recovery of their jobs."""

from __future__ import annotations

from functools import partial

import pytest

from windlass.domain.clock import from_micros
from windlass.domain.states import JobStatus
from windlass.stores.plans import cluster
from windlass.testing.contract.workbench import LEASE, NODE, SECOND, StoreContract, Workbench, at_once

BUDGET = 3
MORE_THAN_A_BATCH = 450


class ClusterContract(StoreContract):
    """Which nodes are alive, and how lost ones are recovered."""

    # ------------------------------------------------------------------ leases

    def test_a_heartbeat_renews_the_lease(self, bench: Workbench) -> None:
        """J7.2: a node is lost past its lease, and only past it."""
        bench.clock.advance(LEASE / SECOND)
        assert bench.database.run(cluster.mark_lost) == 0
        assert bench.beat()
        bench.clock.advance(LEASE / SECOND)
        assert bench.database.run(cluster.mark_lost) == 0
        bench.clock.advance(0.000_001)
        assert bench.database.run(cluster.mark_lost) == 1

    def test_a_node_that_was_marked_lost_notices_at_its_next_heartbeat(self, bench: Workbench) -> None:
        """J7.3: the beat of a lost node is refused, before and after its row is gone."""
        bench.lose(NODE)
        assert not bench.beat()
        bench.recover()
        assert not bench.beat()

    def test_live_nodes_are_those_with_a_lease(self, bench: Workbench) -> None:
        """J7.2: lost nodes, and nodes that signed off, are not counted."""
        for node in ("second", "third", "fourth"):
            bench.register(node)
        assert bench.database.run(cluster.live_nodes) == 4
        bench.database.run(cluster.unregister, "second")
        bench.lose("third", "fourth", alive=[NODE])
        assert bench.database.run(cluster.live_nodes) == 1

    # ------------------------------------------------------------------ recovery

    def test_a_slow_job_on_a_live_node_is_never_touched(self, bench: Workbench) -> None:
        """J7.2: however long it takes, as long as its node sends heartbeats."""
        claim = bench.claimed_job()
        before = bench.seen(claim.job_id)
        for _ in range(100):
            bench.lose(alive=[NODE])
        assert bench.recover() == cluster.Recovered({}, [], more=False, forgotten=[])
        assert bench.seen(claim.job_id) == before
        assert bench.succeed(claim)

    def test_the_jobs_of_a_lost_node_are_pending_again(self, bench: Workbench) -> None:
        """J7.2: state, position in the queue and history; no attempt is used up."""
        bench.register("doomed")
        ids = bench.put(3, due_at=bench.clock.micros())
        bench.claim(node="doomed")
        due = bench.clock.micros()
        bench.lose("doomed", alive=[NODE])
        assert bench.recover() == cluster.Recovered({"doomed": 3}, [], more=True, forgotten=["doomed"])
        for job_id in ids:
            job = bench.job(job_id)
            assert (job.status, job.attempts, job.crash_count, job.node) == (JobStatus.PENDING, 0, 1, None)
            assert job.due_at == from_micros(due)
            assert bench.outcomes(job_id) == [(1, "lost")]
            assert bench.history(job_id)[0].node == "doomed"
        assert [claim.job_id for claim in bench.claim()] == ids
        assert bench.recover() == cluster.Recovered({}, [], more=False, forgotten=[])

    def test_a_lost_node_without_jobs_is_reported_once(self, bench: Workbench) -> None:
        """J7.2: by the node that deletes its row, so that the loss is published once in the cluster."""
        for node in ("idle", "doomed"):
            bench.register(node)
        bench.put(1, due_at=bench.clock.micros())
        bench.claim(node="doomed")
        bench.lose("idle", "doomed", alive=[NODE])
        assert bench.recover() == cluster.Recovered({"doomed": 1}, [], more=True, forgotten=["doomed", "idle"])
        assert bench.recover() == cluster.Recovered({}, [], more=False, forgotten=[])

    def test_the_jobs_of_a_node_without_a_row_are_requeued(self, bench: Workbench) -> None:
        """J7.2: a job RUNNING on an unknown node is orphaned too."""
        bench.register("leaver")
        (job_id,) = bench.put()
        bench.claim(node="leaver")
        bench.database.run(cluster.unregister, "leaver")
        assert bench.recover().recovered == {"leaver": 1}
        assert bench.job(job_id).status is JobStatus.PENDING

    def test_recovery_comes_in_batches_until_nothing_is_left(self, bench: Workbench) -> None:
        """J7.2: a node that held many jobs is recovered in bounded transactions; `more` says to go on."""
        bench.put(MORE_THAN_A_BATCH)
        assert len(bench.claim()) == MORE_THAN_A_BATCH
        bench.lose(NODE)
        counts = []
        while (found := bench.recover()).more:
            counts.append(found.recovered[NODE])
        assert sum(counts) == MORE_THAN_A_BATCH
        assert len(counts) > 1
        assert not bench.beat(), "its row is gone"

    def test_concurrent_recoveries_requeue_each_job_once(self, bench: Workbench) -> None:
        """J7.2: every job is requeued once, by any of them."""
        ids = bench.put(40)
        bench.claim()
        bench.lose(NODE)
        at_once(*[partial(_recover_all, bench)] * 3)
        _recover_all(bench)
        assert {bench.job(job_id).crash_count for job_id in ids} == {1}
        assert {tuple(bench.outcomes(job_id)) for job_id in ids} == {((1, "lost"),)}

    # ------------------------------------------------------------------ late writes

    def test_late_writes_of_a_lost_node_are_refused(self, bench: Workbench) -> None:
        """J7.3: after recovery the fence has moved on, whether the job waits or runs elsewhere."""
        bench.register("stalled")
        bench.put(2)
        late = bench.claim(node="stalled")
        bench.lose("stalled", alive=[NODE])
        bench.recover()
        assert not bench.succeed(late[0])
        assert bench.job(late[0].job_id).status is JobStatus.PENDING
        current = bench.claim()
        assert not bench.retry(late[1])
        assert not bench.fail(late[0])
        assert bench.job(late[1].job_id).node == NODE
        assert [bench.succeed(claim) for claim in current] == [True, True]
        assert bench.outcomes(late[0].job_id) == [(1, "lost"), (1, "succeeded")]

    def test_a_late_write_and_a_recovery_at_once_have_one_winner(self, bench: Workbench) -> None:
        """J7.3: either the node was in time, or its job is requeued."""
        bench.put(12)
        claims = bench.claim()
        bench.lose(NODE)
        for claim in claims[:6]:
            won, _ = at_once(partial(bench.succeed, claim), partial(_recover_all, bench))
            _recover_all(bench)
            status = JobStatus.SUCCEEDED if won else JobStatus.PENDING
            assert bench.job(claim.job_id).status is status
            assert bench.outcomes(claim.job_id) == [(1, "succeeded" if won else "lost")]

    # ------------------------------------------------------------------ crash budget

    def test_a_job_that_kills_its_workers_fails_once_its_crash_budget_is_spent(self, bench: Workbench) -> None:
        """J7.4: three redeliveries, then FAILED as worker_lost, and the business key is free."""
        (job_id,) = bench.put(business_key="order:7")
        for crash in range(BUDGET + 1):
            assert bench.job(job_id).status is JobStatus.PENDING
            bench.register(f"victim-{crash}")
            bench.claim(node=f"victim-{crash}")
            bench.lose(f"victim-{crash}", alive=[NODE])
            given_up = bench.recover(BUDGET).given_up
            assert given_up == ([(job_id, f"victim-{BUDGET}")] if crash == BUDGET else [])
        job = bench.job(job_id)
        assert (job.status, job.reason, job.error_class) == (JobStatus.FAILED, "worker_lost", "WorkerLostError")
        assert (job.attempts, job.crash_count) == (0, BUDGET + 1)
        assert bench.outcomes(job_id) == [(1, "lost")] * (BUDGET + 1)
        assert bench.holder("order:7") is None
        assert bench.claim() == []

    @pytest.mark.parametrize("budget", [0, 1])
    def test_the_budget_is_the_number_of_redeliveries(self, bench: Workbench, budget: int) -> None:
        """J7.4: with 0 the first loss is the last."""
        (job_id,) = bench.put()
        deliveries = 0
        while bench.job(job_id).status is JobStatus.PENDING:
            deliveries += 1
            bench.register(f"victim-{deliveries}")
            bench.claim(node=f"victim-{deliveries}")
            bench.lose(f"victim-{deliveries}")
            bench.recover(budget)
        assert deliveries == budget + 1

    def test_releases_and_retries_do_not_touch_the_crash_budget(self, bench: Workbench) -> None:
        """J7.4: only lost workers are counted, and they are not counted as attempts."""
        claim = bench.claimed_job()
        bench.retry(claim)
        assert (bench.job(claim.job_id).crash_count, bench.job(claim.job_id).attempts) == (0, 1)
        bench.claim()
        bench.lose(NODE)
        bench.recover()
        assert (bench.job(claim.job_id).crash_count, bench.job(claim.job_id).attempts) == (1, 1)


def _recover_all(bench: Workbench) -> None:
    while bench.recover().more:
        pass
