"""The workloads themselves: fill, let go, measure, check. Each on a fresh database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from windlass.cli.bench.checks import Check, Evidence, check
from windlass.cli.bench.jobs import PAYLOAD, BenchApp, loop_factory, open_app
from windlass.cli.bench.processes import Children, Drained
from windlass.cli.bench.scratch import Scratch, settle
from windlass.domain.clock import monotonic
from windlass.domain.priority import MAX_PRIORITY, Priority
from windlass.engine.completer import MAX_IN_A_FLUSH

CONCURRENCY = 100
"""Coroutines that a draining worker runs at a time, unless configured otherwise; the default of the settings."""
THREADS = 20
CALLERS = 32
KEYED_EVERY = 10
QUEUES = 8
CHUNK = 10_000
FUTURE = 86_400
WIDE = 1_000_000
"""A limit that holds nothing up: what is measured is the counting."""
MEGABYTE = 1024 * 1024


class Load(NamedTuple):
    """How much a workload is given."""

    jobs: int
    concurrency: int = CONCURRENCY
    """Of a draining worker."""
    check: Check = check
    """Finds lost and repeated jobs afterwards."""
    largest_flush: int = MAX_IN_A_FLUSH
    """How many outcomes a draining worker writes by one commit."""


class Measure(NamedTuple):
    """One run of one workload."""

    value: float
    problems: list[str]
    details: dict[str, Any]


JobOf = Callable[[BenchApp], Any]
"""Chooses a job of the application, and may set limits for it."""


@contextmanager
def migrated(scratch: Scratch) -> Iterator[BenchApp]:
    """An application on a fresh database with our schema."""
    with scratch.fresh() as url:
        bench = open_app(url)
        try:
            bench.app.migrate()
            yield bench
        finally:
            bench.app.close()


def fill(bench: BenchApp, job: Any, count: int) -> None:
    """Store waiting jobs, in chunks so that memory stays small."""
    for start in range(0, count, CHUNK):
        bench.app.enqueue_many([job.bind(PAYLOAD) for _ in range(min(CHUNK, count - start))])


# ---------------------------------------------------------------------- enqueue


def enqueue_each(scratch: Scratch, load: Load, *, callers: int = 1) -> Measure:
    """W1, W1c: callers that await each call."""
    each = max(load.jobs // callers, 1)
    with migrated(scratch) as bench, asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(bench.noop.aenqueue(PAYLOAD))  # connects
        seconds = runner.run(_callers(bench, callers, each))
        runner.run(bench.app.database.aclose_loop())
        problems = load.check(Evidence(bench.app, each * callers + 1))
        return Measure(each * callers / seconds, problems, {"callers": callers})


async def _callers(bench: BenchApp, callers: int, each: int) -> float:
    async def call() -> None:
        for _ in range(each):
            await bench.noop.aenqueue(PAYLOAD)

    began = monotonic()
    await asyncio.gather(*(call() for _ in range(callers)))
    return monotonic() - began


def enqueue_bulk(scratch: Scratch, load: Load) -> Measure:
    """W2: one call, a tenth of its jobs with idempotency keys; making the calls is part of it."""
    with migrated(scratch) as bench:
        bench.noop.enqueue(PAYLOAD)  # connects
        began = monotonic()
        keyed = {number: bench.noop.using(idempotency_key=f"k{number}") for number in range(0, load.jobs, KEYED_EVERY)}
        bench.app.enqueue_many([keyed.get(number, bench.noop).bind(PAYLOAD) for number in range(load.jobs)])
        seconds = monotonic() - began
        problems = load.check(Evidence(bench.app, load.jobs + 1, len(keyed)))
        return Measure(load.jobs / seconds, problems, {"keyed": len(keyed)})


# ---------------------------------------------------------------------- drain


def drain(scratch: Scratch, load: Load, *, job: JobOf = lambda bench: bench.noop, processes: int = 1) -> Measure:
    """W3, W4, W8: worker processes drain what waits."""
    with migrated(scratch) as bench:
        fill(bench, job(bench), load.jobs)
        run = drained(bench, load, processes)
        problems = load.check(Evidence(bench.app, load.jobs, run=run))
        return _rate(run, problems, processes=processes, concurrency=load.concurrency)


def drain_threads(scratch: Scratch, load: Load) -> Measure:
    """W7: sync jobs of 5 ms on 20 threads."""
    return drain(scratch, load._replace(concurrency=THREADS), job=lambda bench: bench.nap)


def drain_beside_many(scratch: Scratch, load: Load, *, waiting_for_each: int = 25) -> Measure:
    """W6: drain some of many that wait, half of these in the future and of high priority."""
    waiting = load.jobs * waiting_for_each
    with migrated(scratch) as bench:
        fill(bench, bench.noop.using(priority=Priority.HIGH, delay=FUTURE), waiting // 2)
        fill(bench, bench.noop, waiting - waiting // 2)
        run = drained(bench, load)
        problems = load.check(Evidence(bench.app, waiting, run=run, all_of_them=False))
        return _rate(run, problems, waiting=waiting, concurrency=load.concurrency)


def drain_mixed(scratch: Scratch, load: Load) -> Measure:
    """W11: jobs of all priorities in several queues, stored in turns."""
    with migrated(scratch) as bench:
        mixed = [
            bench.noop.using(queue=f"bench-{queue}", priority=priority)
            for queue in range(QUEUES)
            for priority in range(MAX_PRIORITY + 1)
        ]
        for start in range(0, load.jobs, CHUNK):
            numbers = range(start, min(start + CHUNK, load.jobs))
            bench.app.enqueue_many([mixed[number % len(mixed)].bind(PAYLOAD) for number in numbers])
        run = drained(bench, load)
        problems = load.check(Evidence(bench.app, load.jobs, run=run))
        return _rate(run, problems, queues=QUEUES, concurrency=load.concurrency)


def drain_plain(scratch: Scratch, load: Load) -> float:
    """W3, to compare with."""
    return drain(scratch, load).value


def memory(scratch: Scratch, load: Load) -> Measure:
    """W9: peak memory of one worker that drains."""
    with migrated(scratch) as bench:
        fill(bench, bench.noop, load.jobs)
        run = drained(bench, load)
        details = {"idle_mb": run.idle_memory / MEGABYTE, "rate": run.ended / run.seconds}
        problems = load.check(Evidence(bench.app, load.jobs, run=run))
        return Measure(run.peak_memory / MEGABYTE, problems, {**details, "concurrency": load.concurrency})


def drained(bench: BenchApp, load: Load, processes: int = 1) -> Drained:
    """Let workers drain a store until as many jobs have ended as the load has."""
    settle(bench.app.url)
    with Children(bench.app.url, load.concurrency, load.largest_flush, count=processes) as children:
        children.go()
        return children.finish(load.jobs)


def _rate(run: Drained, problems: list[str], **details: Any) -> Measure:
    return Measure(run.ended / run.seconds, problems, {**details, "seconds": run.seconds})


# ---------------------------------------------------------------------- jobs behind limits


def in_limited_queue(bench: BenchApp) -> Any:
    """L1: the queue has a limit of concurrency and a rate."""
    bench.app.limit_queue("default", concurrency=WIDE, rate=WIDE, create=True)
    return bench.noop


def with_permit(bench: BenchApp) -> Any:
    """L2: every job needs a permit of one resource."""
    bench.app.configure_resource("bench", WIDE)
    return bench.noop.using(resource="bench")


def behind_circuit(bench: BenchApp) -> Any:
    """L3: every job stands behind a circuit."""
    bench.app.configure_circuit("bench")
    return bench.noop.using(circuit="bench")
