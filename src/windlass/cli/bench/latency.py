"""W5: how long after `enqueue` returned does the body start, on a worker that has nothing else to do?"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

from windlass.cli.bench import floor, verify
from windlass.cli.bench.jobs import BenchApp, loop_factory
from windlass.cli.bench.measure import Load, Measure, Progress, migrated
from windlass.cli.bench.processes import LISTENER, WORKER, Children
from windlass.cli.bench.scratch import Scratch
from windlass.domain.clock import monotonic

EVERY = 0.05
WARM_UP = 10
"""Jobs before the first one that counts: connections and prepared statements."""


def latency(scratch: Scratch, load: Load, progress: Progress) -> Measure:
    """A job each 50 ms to a worker in its own process; a body that starts before the call returns counts as 0."""
    total = load.jobs + WARM_UP
    with migrated(scratch) as (url, bench), Children(WORKER, url, load.concurrency) as children:
        children.go()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            sent, took = runner.run(_send(bench, total, progress))
            runner.run(bench.app.database.aclose_loop())
        run = children.finish(total, lambda done: None)
        problems = verify.drained(url, total, run)
    times = waits(sent, run.starts)
    details = {"p99": percentile(times, 0.99), "max": times[-1], "enqueue_p50": percentile(sorted(took), 0.5) * 1000}
    return Measure(percentile(times, 0.5), problems, details)


async def _send(bench: BenchApp, total: int, progress: Progress) -> tuple[dict[int, float], list[float]]:
    sent: dict[int, float] = {}
    took: list[float] = []
    next_at = monotonic()
    for number in range(total):
        next_at += EVERY
        await asyncio.sleep(next_at - monotonic())
        began = monotonic()
        await bench.stamp.aenqueue(number)
        sent[number] = monotonic()
        took.append(sent[number] - began)
        progress(number)
    return sent, took[WARM_UP:]


def floor_latency(scratch: Scratch, count: int) -> float | None:
    """The same for a bare notification; None where the store has none."""
    total = count + WARM_UP
    with scratch.fresh() as url:
        if floor.is_sqlite(url):
            return None
        with Children(LISTENER, url, total) as children:
            children.go()
            sent = floor.notify(url, _paced(total))
            run = children.finish(total, lambda done: None)
    return percentile(waits(sent, run.starts), 0.5)


def _paced(total: int) -> Iterator[int]:
    pause = threading.Event()
    next_at = monotonic()
    for number in range(total):
        next_at += EVERY
        pause.wait(max(next_at - monotonic(), 0.0))
        yield number


def waits(sent: dict[int, float], starts: dict[int, float]) -> list[float]:
    """Milliseconds, sorted, without the first few."""
    both = [number for number in sorted(sent) if number in starts][WARM_UP:]
    return sorted(max(starts[number] - sent[number], 0.0) * 1000 for number in both)


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of sorted values lies."""
    return values[min(int(len(values) * share), len(values) - 1)]
