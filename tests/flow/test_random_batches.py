"""Random batches, with failures, cancels, pauses and retries of their children, end as simple arithmetic predicts."""

from dataclasses import dataclass
from random import Random

import pytest

from tests.engine.apps import Apps
from tests.flow import flow_bodies
from tests.flow.flow_bodies import Jobs, all_jobs
from tests.support.flow_invariants import check_settled_flows
from windlass import BatchHandle, Job, JobStatus, Windlass
from windlass.domain.clock import VirtualClock
from windlass.testing import drain


@dataclass(frozen=True)
class Plan:
    """A batch, and what happens to it."""

    children: int
    chunk_size: int
    rate: float
    count: int
    broken: frozenset[str]
    repaired: frozenset[str]
    canceled: frozenset[str]
    pauses: bool

    @classmethod
    def of(cls, random: Random) -> "Plan":
        names = [f"c{number}" for number in range(random.choice((0, 1, 2, 5, 12)))]

        def some(share: float, of: list[str]) -> frozenset[str]:
            return frozenset(name for name in of if random.random() < share)

        broken = some(random.choice((0, 0.2, 0.6)), names)
        return cls(
            len(names),
            chunk_size=random.randint(1, 5),
            rate=random.choice((0.5, 0.8, 1.0)),
            count=random.randint(1, 4),
            broken=broken,
            repaired=some(0.6, sorted(broken)),
            canceled=some(random.choice((0, 0.15)), names),
            pauses=random.random() < 0.3,
        )

    def failed(self, *, retried: bool) -> frozenset[str]:
        """The children that count as failed."""
        return (self.broken - self.repaired if retried else self.broken) | self.canceled

    def fired(self, *, retried: bool) -> set[str]:
        """The followers that run at this end of the batch."""
        failed = len(self.failed(retried=retried))
        rate = 1.0 if self.children == 0 else (self.children - failed) / self.children
        decided = {
            "success": failed == 0,
            "failure": failed > 0,
            "rate": rate >= self.rate,
            "count": failed >= self.count,
        }
        return {name for name, fires in decided.items() if fires}


def enqueued(jobs: Jobs, app: Windlass, plan: Plan) -> BatchHandle:
    batch = app.batch("numbers").each(jobs.step, (f"c{n}" for n in range(plan.children)), chunk_size=plan.chunk_size)
    batch = batch.then_on_batch_success(jobs.step.bind("success")).then_on_batch_failure(jobs.step.bind("failure"))
    batch = batch.when_success_rate(plan.rate, jobs.step.bind("rate"))
    return batch.when_failure_count(plan.count, jobs.step.bind("count")).enqueue()


def steps(app: Windlass) -> list[Job]:
    """Children and followers."""
    return [job for job in all_jobs(app) if job.target.endswith(":step")]


def ran(app: Windlass) -> set[str]:
    """The followers that have run."""
    return {job.args[0] for job in steps(app) if job.status is JobStatus.SUCCEEDED and job.batch_id is None}


def check_progress(handle: BatchHandle, plan: Plan, *, retried: bool) -> None:
    failed, progress = len(plan.failed(retried=retried)), handle.progress()
    assert (progress.total, progress.failed, progress.complete) == (plan.children, failed, True)
    assert handle.status() is (JobStatus.FAILED if failed else JobStatus.SUCCEEDED)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 30))])
def test_random_batch_ends_as_predicted(apps: Apps, clock: VirtualClock, seed: int):
    """J8.4, J2.4: its state, its counts and what follows it, also after its failed children were retried."""
    plan = Plan.of(Random(seed))
    app = apps(clock=clock)
    flow_bodies.BROKEN.update(plan.broken)
    handle = enqueued(Jobs(app), app, plan)
    ids = {job.args[0]: job.id for job in steps(app)}
    if plan.children and plan.pauses:
        assert handle.pause()
        drain(app)
        assert not handle.progress().complete
        assert handle.resume()
    for name in plan.canceled:
        assert app.cancel(ids[name])
    drain(app)
    check_progress(handle, plan, retried=False)
    first = plan.fired(retried=False)
    assert ran(app) == first
    flow_bodies.BROKEN.difference_update(plan.repaired)
    assert handle.retry_failed() == len(plan.broken - plan.canceled)
    drain(app)
    check_progress(handle, plan, retried=bool(plan.broken - plan.canceled))
    assert ran(app) == first | plan.fired(retried=True)
    check_settled_flows(app.url)
