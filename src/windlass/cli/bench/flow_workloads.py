"""F2, F3: jobs of flows, drained by two processes in turns with as many loose ones."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from windlass import RESULT, Call, Flow, Job, Windlass, group
from windlass.cli.bench.checks import Evidence, differences
from windlass.cli.bench.jobs import PAYLOAD, BenchApp
from windlass.cli.bench.measure import Load, Measure, drain, drained, fill, migrated
from windlass.cli.bench.scratch import Scratch

PROCESSES = 2
PAGE = 1_000


class ChainOfTwo(NamedTuple):
    """A job and itself once more behind it; bound as a single job is."""

    job: Any

    def bind(self, payload: str) -> Flow[Any]:
        """Return the chain as a flow."""
        first: Call[Any] = self.job.bind(payload)
        return first.then(self.job.bind(payload))


def drain_chains(scratch: Scratch, load: Load) -> Measure:
    """F2: chains of two; the jobs of both steps count."""
    chains = max(load.jobs // 2, 1)
    load = load._replace(jobs=2 * chains)
    with migrated(scratch) as bench:
        fill(bench, ChainOfTwo(bench.noop), chains)
        run = drained(bench, load, PROCESSES)
        problems = load.check(Evidence(bench.app, load.jobs, run=run))
        return Measure(run.ended / run.seconds, problems, {"chains": chains, "seconds": run.seconds})


def drain_loose(scratch: Scratch, load: Load) -> float:
    """Return the rate of loose jobs that do the same as the chains."""
    return drain(scratch, load, processes=PROCESSES).value


def drain_group(scratch: Scratch, load: Load) -> Measure:
    """F3: one group whose join takes all results; its members count, and the wait until its join starts is a detail."""
    stored = load.jobs + 1
    with migrated(scratch) as bench:
        join = group(*_members(bench, load.jobs)).then(bench.join.bind(RESULT)).enqueue()
        run = drained(bench, load._replace(jobs=stored), PROCESSES)
        joined = bench.app.get(join.id)
        members = [job for job in _all_jobs(bench.app) if job.id != joined.id]
        problems = [*load.check(Evidence(bench.app, stored, run=run)), *check_join(joined, load.jobs)]
        waited = (_at(joined.started_at) - _last_end(members)).total_seconds()
        return Measure(_rate(members), problems, {"join_ms": waited * 1000, "seconds": run.seconds})


def check_join(join: Job, members: int) -> list[str]:
    """Return the errors of a join, which must run once and get the results of all members."""
    return differences(("attempts of the join", 1, join.attempts), ("results that it got", members, join.result))


def drain_loose_members(scratch: Scratch, load: Load) -> float:
    """Return the rate of loose jobs that do the same as the members."""
    with migrated(scratch) as bench:
        bench.app.enqueue_many(_members(bench, load.jobs))
        drained(bench, load, PROCESSES)
        return _rate(_all_jobs(bench.app))


def _members(bench: BenchApp, count: int) -> list[Any]:
    return [bench.member.bind(PAYLOAD) for _ in range(count)]


def _all_jobs(app: Windlass) -> list[Job]:
    page = app.find(limit=PAGE)
    jobs = page.items
    while page.next_cursor is not None:
        page = app.find(limit=PAGE, cursor=page.next_cursor)
        jobs += page.items
    return jobs


def _rate(jobs: list[Job]) -> float:
    """Jobs a second from the first claim to the last end, by stored times: the join is not part of it."""
    first = min(_at(job.picked_at) for job in jobs)
    return len(jobs) / (_last_end(jobs) - first).total_seconds()


def _last_end(jobs: list[Job]) -> datetime:
    return max(_at(job.finished_at) for job in jobs)


def _at(time: datetime | None) -> datetime:
    assert time is not None, "every job has run"
    return time
