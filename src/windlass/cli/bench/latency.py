"""W5, W10: how long after `enqueue` returned does the body start, on an idle worker and under a steady stream?"""

from __future__ import annotations

import asyncio

from windlass.cli.bench.checks import Evidence
from windlass.cli.bench.jobs import BenchApp, loop_factory
from windlass.cli.bench.measure import Load, Measure, migrated
from windlass.cli.bench.processes import Children
from windlass.cli.bench.scratch import Scratch
from windlass.domain.clock import monotonic

EVERY = 0.05
STEADY = 0.001
WARM_UP = 10
"""Jobs before the first one that counts: connections and prepared statements."""


def latency(scratch: Scratch, load: Load, *, every: float = EVERY) -> Measure:
    """Single jobs at a steady pace to a worker in its own process; a body that starts before the call returns counts
    as 0. A call that takes longer than its turn is followed by the next one at once.
    """
    total = load.jobs + WARM_UP
    with migrated(scratch) as bench, Children(bench.app.url, load.concurrency) as children:
        children.go()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            sent, took = runner.run(_send(bench, total, every))
            runner.run(bench.app.database.aclose_loop())
        run = children.finish(total)
        problems = load.check(Evidence(bench.app, total, run=run))
    times = waits(sent, run.starts)
    details = {
        "p99": percentile(times, 0.99),
        "max": times[-1],
        "enqueue_p50": percentile(sorted(took), 0.5) * 1000,
        "a_second": len(sent) / max(max(sent.values()) - min(sent.values()), every),
    }
    return Measure(percentile(times, 0.5), problems, details)


async def _send(bench: BenchApp, total: int, every: float) -> tuple[dict[int, float], list[float]]:
    sent: dict[int, float] = {}
    took: list[float] = []
    next_at = monotonic()
    for number in range(total):
        next_at += every
        await asyncio.sleep(next_at - monotonic())
        began = monotonic()
        await bench.stamp.aenqueue(number)
        sent[number] = monotonic()
        took.append(sent[number] - began)
    return sent, took[WARM_UP:]


def waits(sent: dict[int, float], starts: dict[int, float]) -> list[float]:
    """Milliseconds, sorted, without the first few."""
    both = [number for number in sorted(sent) if number in starts][WARM_UP:]
    return sorted(max(starts[number] - sent[number], 0.0) * 1000 for number in both)


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of sorted values lies."""
    return values[min(int(len(values) * share), len(values) - 1)]
