"""What the floor of each workload measures."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from benchmarks import floors
from windlass.cli.bench.jobs import NAP, PAYLOAD
from windlass.cli.bench.latency import EVERY, WARM_UP, percentile, waits
from windlass.cli.bench.measure import CONCURRENCY, KEYED_EVERY, MEGABYTE, THREADS, fill, migrated
from windlass.cli.bench.processes import Children
from windlass.cli.bench.scratch import Scratch, is_sqlite, settle
from windlass.domain.clock import monotonic

BATCH = 500
"""Jobs that the bare drain claims and completes at a time."""


def program(kind: str) -> Sequence[str]:
    """A child of this kind."""
    return ("-m", "benchmarks.floors.child", kind)


def enqueue(scratch: Scratch, count: int, at_a_time: int = 1) -> float:
    """Rows per second of the bare insert, each statement committed before the next."""
    with migrated(scratch) as bench:
        bench.noop.enqueue(PAYLOAD)
        rows = max(count // at_a_time, 1) * at_a_time
        seconds: float = floors.on(bench.app.url).enqueue(bench.app.url, rows, at_a_time)
        return rows / seconds


def enqueue_bulk(scratch: Scratch, count: int) -> float:
    """Rows per second of the bare bulk insert, in one transaction."""
    with migrated(scratch) as bench:
        seconds: float = floors.on(bench.app.url).enqueue_bulk(bench.app.url, count, KEYED_EVERY)
        return count / seconds


def drain(scratch: Scratch, count: int, processes: int = 1) -> float:
    """Jobs per second of the bare claim and completion."""
    with migrated(scratch) as bench:
        fill(bench, bench.noop, count)
        settle(bench.app.url)
        with Children(bench.app.url, BATCH, count=processes, program=program("drain"), ends=True) as children:
            children.go()
            run = children.finish(count)
        return run.ended / run.seconds


def threads(scratch: Scratch, count: int) -> float:
    """What so many threads can sleep through, by arithmetic."""
    del scratch, count
    return THREADS / NAP


def memory(scratch: Scratch, count: int) -> float:
    """Megabytes of a worker that has nothing to do."""
    del count
    with migrated(scratch) as bench, Children(bench.app.url, CONCURRENCY) as children:
        children.go()
        return children.finish(0).idle_memory / MEGABYTE


def latency(scratch: Scratch, count: int, every: float = EVERY) -> float | None:
    """Milliseconds until a bare notification arrives; None where the store has none."""
    total = count + WARM_UP
    with scratch.fresh() as url:
        if is_sqlite(url):
            return None
        with Children(url, total, program=program("listen"), ends=True) as children:
            children.go()
            sent: dict[int, float] = floors.on(url).notify(url, _paced(total, every))
            run = children.finish(total)
    return percentile(waits(sent, run.starts), 0.5)


def _paced(total: int, every: float) -> Iterator[int]:
    pause = threading.Event()
    next_at = monotonic()
    for number in range(total):
        next_at += every
        pause.wait(max(next_at - monotonic(), 0.0))
        yield number
