"""Expiry: jobs that have not started by their expiry time."""

from __future__ import annotations

import pytest

from windlass.domain.job import Claim
from windlass.domain.states import JobStatus
from windlass.domain.transition import Times, Transition, expired, released, snoozed
from windlass.stores.plans import moves
from windlass.testing.contract.workbench import NODE, SECOND, StoreContract, Workbench, new_job

S = JobStatus


class ExpiryContract(StoreContract):
    """Which jobs expire, and what happens to them."""

    @pytest.mark.parametrize("count", [1, 2, 150])
    def test_every_way_to_submit_keeps_the_expiry(self, bench: Workbench, count: int) -> None:
        """J1.9: a time, or as long after the enqueue by the store's clock; none for the others."""
        now = bench.clock.micros()
        bench.submit([new_job("at", expires_at=now + 7) for _ in range(count)])
        bench.submit([new_job("after", expires_us=SECOND) for _ in range(count)])
        bench.submit([new_job("never") for _ in range(count)])
        found = {(claim.queue, claim.expires) for claim in bench.claim()}
        assert found == {("at", now + 7), ("after", now + SECOND), ("never", None)}

    def test_expired_jobs_are_canceled_in_bounded_batches(self, bench: Workbench) -> None:
        """J1.9: waiting or paused, the first to expire first; keys are free again; nothing else is touched."""
        late, soon, paused = (
            bench.put(business_key=key, expires_us=wait * SECOND)[0] for key, wait in (("a", 3), ("b", 1), ("c", 2))
        )
        (later,), (never,) = bench.put(expires_us=60 * SECOND), bench.put()
        bench.database.run(moves.pause, [paused])
        assert bench.database.run(moves.cancel_expired, 10).ended == []
        bench.clock.advance(5)
        first = bench.database.run(moves.cancel_expired, 2).ended
        assert {job.job_id: job.left for job in first} == {soon: S.PENDING, paused: S.PAUSED}
        assert [job.job_id for job in bench.database.run(moves.cancel_expired, 2).ended] == [late]
        assert bench.database.run(moves.cancel_expired, 2).ended == []
        ended = [bench.job(job) for job in (late, soon, paused)]
        assert {(job.status, job.reason, job.attempts) for job in ended} == {(S.CANCELED, "expired", 0)}
        assert [bench.holder(key) for key in "abc"] == [None] * 3
        assert {bench.job(job).status for job in (later, never)} == {S.PENDING}

    def test_running_jobs_do_not_expire(self, bench: Workbench) -> None:
        """J1.9: neither while it runs nor once it has been started and waits again."""
        claim = bench.claimed_job(expires_us=SECOND)
        bench.clock.advance(5)
        assert bench.database.run(moves.cancel_expired, 10).ended == []
        assert bench.retry(claim)
        assert bench.database.run(moves.cancel_expired, 10).ended == []
        (again,) = bench.claim()
        assert again.expires is None
        assert bench.apply(snoozed(again, bench.times(), 0))[0]
        assert bench.claim()[0].expires is None

    def test_a_job_released_before_it_started_still_expires(self, bench: Workbench) -> None:
        """J1.9: a claim is no start."""
        claim = bench.claimed_job(expires_us=SECOND)
        assert bench.apply(released(claim, Times(None, bench.clock.micros(), None)))[0]
        bench.clock.advance(5)
        assert [job.job_id for job in bench.database.run(moves.cancel_expired, 10).ended] == [claim.job_id]

    def test_jobs_of_a_lost_node_do_not_expire(self, bench: Workbench) -> None:
        """J1.9: it may have started, and a job that is half done is not canceled."""
        bench.claimed_job(expires_us=SECOND)
        bench.lose(NODE)
        bench.recover()
        assert bench.database.run(moves.cancel_expired, 10).ended == []
        bench.register("other")
        assert [claim.expires for claim in bench.claim(node="other")] == [None]

    def test_a_claim_of_an_expired_job_ends_it(self, bench: Workbench) -> None:
        """J1.9: guarded by its fence like every outcome; the key is free, and no attempt was spent."""
        claim = bench.claimed_job(business_key="order:7", expires_us=SECOND)
        assert bench.apply(_too_late(bench, claim)) == [True]
        job = bench.job(claim.job_id)
        assert (job.status, job.reason, job.attempts) == (S.CANCELED, "expired", 0)
        assert bench.outcomes(claim.job_id) == [(1, "expired")]
        assert bench.holder("order:7") is None
        assert bench.apply(_too_late(bench, claim)) == [False]
        assert bench.apply(_too_late(bench, claim), retried=True) == [True]


def _too_late(bench: Workbench, claim: Claim) -> Transition:
    return expired(claim, Times(None, bench.clock.micros(), None), holds_key=True)
