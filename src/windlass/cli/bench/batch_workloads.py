"""F1, F4, F5, F6: a batch drained in turns with as many loose jobs, and the loading of one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from windlass import BatchHandle
from windlass.cli.bench.checks import differences
from windlass.cli.bench.jobs import PAYLOAD, BenchApp, open_app
from windlass.cli.bench.measure import MEGABYTE, Load, Measure, drain, drained, migrated
from windlass.cli.bench.processes import Drained
from windlass.cli.bench.scratch import Scratch
from windlass.domain.clock import monotonic

PROCESSES = 2
SMALL_PROCESSES, SMALL_SLOTS, SMALL_FLUSH = 8, 2, 3
"""16 slots in many processes, each of which writes at most three outcomes by one commit."""
KILOBYTE = 1024


def drain_batch(scratch: Scratch, load: Load) -> Measure:
    """F1: one batch; its children count."""
    return _drain(scratch, load, "noop")


def drain_loose(scratch: Scratch, load: Load) -> float:
    """Return the rate of loose jobs that do the same."""
    return drain(scratch, load, processes=PROCESSES).value


def drain_batch_threads(scratch: Scratch, load: Load) -> Measure:
    """F4: one batch whose children take 5 ms on 16 slots, counted by commits of one to three from eight processes."""
    return _drain(scratch, _small(load), "nap", SMALL_PROCESSES)


def drain_loose_threads(scratch: Scratch, load: Load) -> float:
    """Return the rate of loose jobs that do the same."""
    return drain(scratch, _small(load), job=lambda bench: bench.nap, processes=SMALL_PROCESSES).value


def _small(load: Load) -> Load:
    return load._replace(concurrency=SMALL_SLOTS, largest_flush=SMALL_FLUSH)


def load_batch(scratch: Scratch, load: Load) -> Measure:
    """F5: items a second from an iterator to committed children."""
    with migrated(scratch) as bench:
        bench.noop.enqueue(PAYLOAD)  # connects
        began = monotonic()
        handle = _load(bench, bench.noop, load.jobs)
        seconds = monotonic() - began
        problems = differences(("children", load.jobs, handle.progress().total))
        return Measure(load.jobs / seconds, problems, {"seconds": seconds})


def load_memory(scratch: Scratch, load: Load) -> Measure:
    """F6: how much the memory of a process grows that loads a batch and does nothing else."""
    with migrated(scratch) as bench:
        code = f"from {__name__} import load_alone; load_alone({bench.app.url!r}, {load.jobs})"
        found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        idle, peak = (int(number) for number in found.stdout.split())
        (batch,) = bench.app.find(target="windlass:batch")
        total = bench.app.batch_handle(batch.id).progress().total
        details = {"idle_mb": idle / MEGABYTE, "growth_mb": (peak - idle) / MEGABYTE}
        return Measure(peak / MEGABYTE, differences(("children", load.jobs, total)), details)


def load_alone(url: str, items: int) -> None:
    """Load a batch, and print the memory of this process before it and its peak, in bytes."""
    bench = open_app(url)
    bench.noop.enqueue(PAYLOAD)  # connects
    idle = _peak_memory()
    _load(bench, bench.noop, items)
    print(idle, _peak_memory())
    bench.app.close()


def _drain(scratch: Scratch, load: Load, job: str, processes: int = PROCESSES) -> Measure:
    with migrated(scratch) as bench:
        handle = _load(bench, getattr(bench, job), load.jobs)
        run = drained(bench, load, processes)
        problems = check_batch(handle, load.jobs, run) + check_commits(run, load.largest_flush)
        details = {"seconds": run.seconds, "processes": processes, "jobs_a_commit": run.ended / run.commits.total()}
        return Measure(run.ended / run.seconds, problems, details)


def check_batch(handle: BatchHandle, children: int, run: Drained) -> list[str]:
    """Return the errors of a batch, which must have ended with its last child."""
    progress = handle.progress()
    return differences(
        ("children", children, progress.total),
        ("children that succeeded", children, progress.completed),
        ("attempts", children, run.ended),
        ("end of the batch", "SUCCEEDED", handle.status().value),
    )


def check_commits(run: Drained, largest: int) -> list[str]:
    """Return whether workers have written more jobs by one commit than the workload is about."""
    too_large = sum(count for size, count in run.commits.items() if size > largest)
    return differences((f"commits of more than {largest} jobs", 0, too_large))


def _load(bench: BenchApp, job: Any, count: int) -> BatchHandle:
    return bench.app.batch("bench").each(job, _items(count)).enqueue()


def _items(count: int) -> Iterator[str]:
    return repeat(PAYLOAD, count)


def _peak_memory() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILOBYTE
