"""The workloads themselves: fill, let go, measure, check. Each on a fresh database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from windlass.cli.bench import floor, verify
from windlass.cli.bench.jobs import NAP, PAYLOAD, BenchApp, loop_factory, open_app
from windlass.cli.bench.processes import BARE, WORKER, Children, Drained
from windlass.cli.bench.scratch import Scratch, settle
from windlass.domain.clock import monotonic
from windlass.domain.priority import Priority

CONCURRENCY = 100
"""Coroutines that a draining worker runs at a time, unless told otherwise; the default of the settings."""
THREADS = 20
CALLERS = 32
KEYED_EVERY = 10
CHUNK = 10_000
FUTURE = 86_400
FLOOR_BATCH = 500
MEGABYTE = 1024 * 1024

Progress = Callable[[int], None]


class Load(NamedTuple):
    """How much a workload is given."""

    jobs: int
    concurrency: int = CONCURRENCY
    """Of a draining worker."""


@dataclass(frozen=True)
class Measure:
    """One run of one workload."""

    value: float
    problems: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


@contextmanager
def migrated(scratch: Scratch) -> Iterator[tuple[str, BenchApp]]:
    """A fresh database with our schema, and an application on it."""
    with scratch.fresh() as url:
        bench = open_app(url)
        try:
            bench.app.migrate()
            yield url, bench
        finally:
            bench.app.close()


def fill(bench: BenchApp, job: Any, count: int, **options: Any) -> None:
    """Store waiting jobs, in chunks so that memory stays small."""
    wanted = job.using(**options) if options else job
    for start in range(0, count, CHUNK):
        bench.app.enqueue_many([wanted.bind(PAYLOAD) for _ in range(min(CHUNK, count - start))])


# ---------------------------------------------------------------------- enqueue


def enqueue_one_by_one(scratch: Scratch, load: Load, progress: Progress) -> Measure:
    """W1: one caller, each call awaited."""
    return _enqueue_async(scratch, load.jobs, 1, progress)


def enqueue_together(scratch: Scratch, load: Load, progress: Progress) -> Measure:
    """W1c: 32 callers at once."""
    return _enqueue_async(scratch, load.jobs, CALLERS, progress)


def _enqueue_async(scratch: Scratch, count: int, callers: int, progress: Progress) -> Measure:
    each = max(count // callers, 1)
    with migrated(scratch) as (url, bench), asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(bench.noop.aenqueue(PAYLOAD))  # connects
        seconds = runner.run(_callers(bench, callers, each, progress))
        runner.run(bench.app.database.aclose_loop())
        return Measure(each * callers / seconds, verify.enqueued(url, each * callers + 1), {"callers": callers})


async def _callers(bench: BenchApp, callers: int, each: int, progress: Progress) -> float:
    async def call() -> None:
        for number in range(each):
            await bench.noop.aenqueue(PAYLOAD)
            if number % 256 == 0:
                progress(number * callers)

    began = monotonic()
    await asyncio.gather(*(call() for _ in range(callers)))
    return monotonic() - began


def enqueue_bulk(scratch: Scratch, load: Load, progress: Progress) -> Measure:
    """W2: one call, a tenth of its jobs with idempotency keys; making the calls is part of it."""
    count = load.jobs
    with migrated(scratch) as (url, bench):
        bench.noop.enqueue(PAYLOAD)  # connects
        began = monotonic()
        keyed = {number: bench.noop.using(idempotency_key=f"k{number}") for number in range(0, count, KEYED_EVERY)}
        bench.app.enqueue_many([keyed.get(number, bench.noop).bind(PAYLOAD) for number in range(count)])
        seconds = monotonic() - began
        progress(count)
        return Measure(count / seconds, verify.enqueued(url, count + 1, len(keyed)), {"keyed": len(keyed)})


# ---------------------------------------------------------------------- drain


def drain(scratch: Scratch, load: Load, progress: Progress, *, processes: int = 1) -> Measure:
    """W3, W4, W8: worker processes drain what waits."""
    with migrated(scratch) as (url, bench):
        fill(bench, bench.noop, load.jobs)
        run = drained_by(WORKER, url, load.concurrency, processes, load.jobs, progress)
        problems = verify.drained(url, load.jobs, run)
        return rate(run, problems, processes=processes, concurrency=load.concurrency)


def drain_beside_many(scratch: Scratch, load: Load, progress: Progress, *, waiting_for_each: int = 25) -> Measure:
    """W6: drain some of many that wait, half of these in the future and of high priority."""
    waiting = load.jobs * waiting_for_each
    with migrated(scratch) as (url, bench):
        fill(bench, bench.noop, waiting // 2, priority=Priority.HIGH, delay=FUTURE)
        fill(bench, bench.noop, waiting - waiting // 2)
        run = drained_by(WORKER, url, load.concurrency, 1, load.jobs, progress)
        problems = verify.drained(url, waiting, run, all_of_them=False)
        return rate(run, problems, waiting=waiting, concurrency=load.concurrency)


def drain_threads(scratch: Scratch, load: Load, progress: Progress) -> Measure:
    """W7: sync jobs of 5 ms on 20 threads."""
    with migrated(scratch) as (url, bench):
        fill(bench, bench.nap, load.jobs)
        run = drained_by(WORKER, url, THREADS, 1, load.jobs, progress)
        return rate(run, verify.drained(url, load.jobs, run), threads=THREADS)


def memory(scratch: Scratch, load: Load, progress: Progress) -> Measure:
    """W9: peak memory of one worker that drains."""
    with migrated(scratch) as (url, bench):
        fill(bench, bench.noop, load.jobs)
        run = drained_by(WORKER, url, load.concurrency, 1, load.jobs, progress)
        details = {"idle_mb": run.idle_memory / MEGABYTE, "rate": run.ended / run.seconds}
        problems = verify.drained(url, load.jobs, run)
        return Measure(run.peak_memory / MEGABYTE, problems, {**details, "concurrency": load.concurrency})


def drained_by(kind: str, url: str, argument: int, processes: int, expected: int, progress: Progress) -> Drained:
    """Let children drain a store until so many jobs have ended."""
    settle(url)
    with Children(kind, url, argument, processes) as children:
        children.go()
        return children.finish(expected, progress)


def rate(run: Drained, problems: list[str], **details: Any) -> Measure:
    """What a run amounted to, in jobs per second."""
    return Measure(run.ended / run.seconds, problems, {**details, "seconds": run.seconds})


# ---------------------------------------------------------------------- floors


def floor_enqueue(scratch: Scratch, count: int, at_a_time: int) -> float:
    """Rows per second of the bare insert."""
    with migrated(scratch) as (url, bench):
        bench.noop.enqueue(PAYLOAD)
        each = max(count // at_a_time, 1)
        return each * at_a_time / floor.enqueue(url, each * at_a_time, at_a_time)


def floor_bulk(scratch: Scratch, count: int) -> float:
    """Rows per second of the bare bulk insert."""
    with migrated(scratch) as (url, _):
        return count / floor.enqueue_bulk(url, count, KEYED_EVERY)


def floor_drain(scratch: Scratch, count: int, processes: int = 1) -> float:
    """Jobs per second of the bare claim and completion."""
    with migrated(scratch) as (url, bench):
        fill(bench, bench.noop, count)
        run = drained_by(BARE, url, FLOOR_BATCH, processes, count, lambda done: None)
        return run.ended / run.seconds


def floor_memory(scratch: Scratch, count: int) -> float:
    """Megabytes of a worker that has nothing to do."""
    del count
    with migrated(scratch) as (url, _), Children(WORKER, url, CONCURRENCY) as children:
        children.go()
        return children.finish(0, lambda done: None).idle_memory / MEGABYTE


def floor_threads(scratch: Scratch, count: int) -> float:
    """What so many threads can sleep through, by arithmetic."""
    del scratch, count
    return THREADS / NAP
