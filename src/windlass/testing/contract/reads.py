"""Reads: what handles query, for jobs in every state and for jobs that do not exist."""

from __future__ import annotations

import asyncio
from typing import Any

from windlass.domain.job import Outcome
from windlass.domain.states import JobStatus
from windlass.stores.plans import reads
from windlass.testing.contract.workbench import FAILURE, StoreContract, Workbench, new_job


class ReadsContract(StoreContract):
    """Plans that change nothing."""

    def test_unknown_jobs_are_none_and_omitted(self, bench: Workbench) -> None:
        """J1.1: asking for a job that was never stored is answered, not an error."""
        stranger = new_job().id
        assert bench.database.read(reads.get, stranger) is None
        assert bench.database.read(reads.history, stranger) is None
        assert bench.database.read(reads.outcomes, [stranger]) == []
        assert bench.database.read(reads.outcomes, []) == []

    def test_a_job_without_attempts_has_an_empty_history(self, bench: Workbench) -> None:
        """J2.5: history belongs to attempts."""
        (job_id,) = bench.put()
        assert bench.database.read(reads.history, job_id) == []

    def test_outcomes_return_the_status_of_many_jobs(self, bench: Workbench) -> None:
        """J2.1: status, and at the end result or error, for any number of jobs in one read."""
        bench.put(3)
        won, lost, running = bench.claim()
        bench.succeed(won, '"fine"')
        bench.fail(lost)
        (waiting,) = bench.put()
        ids = [won.job_id, lost.job_id, running.job_id, waiting]
        found = {outcome.job_id: outcome for outcome in bench.database.read(reads.outcomes, [*ids, new_job().id])}
        target = won.target
        assert found == {
            won.job_id: Outcome(won.job_id, JobStatus.SUCCEEDED, target, '"fine"'),
            lost.job_id: Outcome(
                lost.job_id, JobStatus.FAILED, target, None, FAILURE.error, FAILURE.error_class, "retry_exhausted"
            ),
            running.job_id: Outcome(running.job_id, JobStatus.RUNNING, target),
            waiting: Outcome(waiting, JobStatus.PENDING, target),
        }

    def test_the_history_is_returned_oldest_first(self, bench: Workbench) -> None:
        """J2.5: in the order of the claims."""
        claim = bench.claimed_job()
        moments = []
        for _ in range(3):
            moments.append(bench.clock.now())
            bench.retry(claim)
            bench.clock.advance(1)
            (claim,) = bench.claim()
        assert [attempt.ended_at for attempt in bench.history(claim.job_id)] == moments

    def test_async_readers_see_the_same(self, bench: Workbench) -> None:
        """J1.1: one plan serves sync and async callers."""
        (job_id,) = bench.put()

        async def read() -> Any:
            try:
                return await bench.database.aread(reads.get, job_id)
            finally:
                await bench.database.aclose_loop()

        assert asyncio.run(read()) == bench.database.read(reads.get, job_id)

    def test_the_store_returns_the_time_of_its_clock(self, bench: Workbench) -> None:
        """J3.6: heads carry the store's own time, so that a node can sleep until the next due time exactly."""
        bench.clock.advance(12.5)
        assert bench.heads().now == bench.clock.micros()
