"""Follow-ups: jobs that are stored by the same transaction that ends another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

import pytest

from windlass.domain.ended import Effects, Ended
from windlass.domain.states import JobStatus, Move
from windlass.domain.tags import tags_of
from windlass.domain.transition import passed_over, succeeded
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp, with_payloads
from windlass.stores.plan import Plan
from windlass.stores.plans import cluster, jobs, unknown_targets
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
