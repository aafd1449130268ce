"""Following: jobs that are stored by the very transaction that ends another one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

import pytest

from windlass.domain.job import EndedJob
from windlass.domain.states import JobStatus
from windlass.domain.tags import tags_of
from windlass.domain.transition import passed_over, succeeded
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import cluster, jobs, queues, reads
from windlass.testing.contract.workbench import (
    NODE,
    SECOND,
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


class StopError(Exception):
    """What goes wrong before the commit."""


class FollowUpsContract(StoreContract):
    """What is written along with an outcome, and only then."""

    @pytest.mark.parametrize("count", [1, 3, MANY])
    def test_jobs_that_follow_name_their_parent(self, bench: Workbench, count: int) -> None:
        """J5.5: however many there are, with tags, and in queues that nobody has seen."""
        (parent,) = bench.put()
        rows = [new_job("new", tags=("t",), parent_id=parent, correlation_id="c") for _ in range(count)]
        bench.database.run(jobs.follow, rows, ["new"])
        for row in rows[:3]:
            stored = bench.job(row.id)
            assert (stored.parent_id, stored.queue, stored.tags) == (UUID(parent), "new", ("t",))
            assert (stored.status, stored.correlation_id) == (JobStatus.PENDING, "c")
        assert bench.job(parent).parent_id is None
        assert {claim.job_id for claim in bench.claim()} == {parent, *(row.id for row in rows)}

    def test_an_outcome_and_what_follows_are_written_together(self, bench: Workbench) -> None:
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

    def test_a_spent_crash_budget_is_followed_in_its_transaction(self, bench: Workbench) -> None:
        """J5.5, J7.4: once, whoever recovers; if what follows cannot be written, the job is not given up either."""
        bench.register("doomed")
        (job_id,) = bench.put(options='{"max_retries":2}', args=text_of_size(2000), tags=("t",))
        assert len(bench.claim(node="doomed")) == 1
        bench.lose("doomed", alive=[NODE])
        with pytest.raises(StopError):
            bench.database.run(cluster.recover, 0, _stop)
        assert bench.job(job_id).status is JobStatus.RUNNING
        follower = _Follower()
        at_once(*[partial(bench.database.run, cluster.recover, 0, follower) for _ in range(RACERS)])
        ((options, ended),) = follower.committed(bench, parent=job_id)
        assert (options, ended.job_id, ended.status) == ('{"max_retries":2}', job_id, JobStatus.FAILED)
        assert (ended.args, tags_of(ended.tags), ended.reason) == (text_of_size(2000), ("t",), "worker_lost")
        assert (ended.attempts, ended.error_class, ended.result) == (0, "WorkerLostError", None)

    def test_a_job_given_up_without_options_has_nothing_to_follow(self, bench: Workbench) -> None:
        """J5.5: nothing is read of jobs that stored none."""
        bench.register("doomed")
        bench.put(3)
        assert len(bench.claim(node="doomed")) == 3
        bench.lose("doomed", alive=[NODE])
        follower = _Follower()
        assert len(bench.database.run(cluster.recover, 0, follower).given_up) == 3
        assert follower.told == {}

    def test_an_unknown_target_given_up_is_followed_in_its_transaction(self, bench: Workbench) -> None:
        """J5.5, J6.3: the other way to fail without an attempt."""
        (job_id,) = bench.put(options="{}")
        (claim,) = bench.claim()
        assert bench.apply(passed_over(claim, bench.times(), "target:x")) == [True]
        bench.clock.advance(2 * DAY)
        waited = (DAY * SECOND, lambda target: f"no {target}")
        with pytest.raises(StopError):
            bench.database.run(queues.fail_unknown, *waited, _stop)
        assert bench.job(job_id).status is JobStatus.PENDING
        follower = _Follower()
        assert [job.job_id for job in bench.database.run(queues.fail_unknown, *waited, follower)] == [job_id]
        ((_, ended),) = follower.committed(bench, parent=job_id)
        assert (ended.job_id, ended.reason, ended.error) == (job_id, "target_not_found", "no shop:charge")

    def test_large_options_do_not_come_with_the_claim(self, bench: Workbench) -> None:
        """J3.3: a waiting claim is light, whatever its callbacks carry."""
        bench.put(options=text_of_size(5000))
        (small,) = bench.put(options='{"max_retries":1}')
        assert bench.claim_all().payloads.keys() == {small}


class _Follower:
    """Stores one job for each that was given up, and remembers what it was told of it."""

    def __init__(self) -> None:
        self.told: dict[str, tuple[str, EndedJob]] = {}

    def __call__(self, dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
        for options, ended in (yield from reads.given_up(dialect, ids)):
            row = new_job(parent_id=ended.job_id)
            self.told[row.id] = (options, ended)
            yield from jobs.follow(dialect, [row], [])

    def committed(self, bench: Workbench, parent: str) -> list[tuple[str, EndedJob]]:
        """What was told of jobs whose follower is stored: a plan may be run more than once."""
        stored = [job_id for job_id in self.told if bench.exists(job_id)]
        assert {bench.job(job_id).parent_id for job_id in stored} == {UUID(parent)}
        return [self.told[job_id] for job_id in stored]


def _stop(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Writes something, and fails."""
    yield from jobs.follow(dialect, [new_job(parent_id=job_id) for job_id in ids], [])
    raise StopError
