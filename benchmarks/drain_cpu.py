"""CPU time of a drain on PostgreSQL by who spends it: the workers, and the server with all of its sessions.

    python benchmarks/drain_cpu.py [--jobs 40000] [--repeat 3]

Starts a durable server of its own. Rates scatter with the machine; CPU time a job scatters less. On so many cores a
drain takes at least the sum of both, divided by their number.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psycopg

from benchmarks.floors.measures import BATCH, program
from windlass.cli.bench.flow_workloads import ChainOfTwo
from windlass.cli.bench.jobs import BenchApp
from windlass.cli.bench.measure import Load, drained, fill, migrated
from windlass.cli.bench.processes import Children, Drained
from windlass.cli.bench.scratch import Scratch, open_stores, settle

TICKS = os.sysconf("SC_CLK_TCK")
CPU_FIELDS = slice(11, 15)
"""Of /proc/PID/stat behind the name: user and system time of a process, and of its children that have ended."""
PARENT = 1


class Cost(NamedTuple):
    """Microseconds a job."""

    wall: float
    workers: float
    server: float


def main() -> None:
    """Measure in turns, and print medians."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--jobs", type=int, default=40_000)
    options.add_argument("--repeat", type=int, default=3)
    given = options.parse_args()
    costs: dict[str, list[Cost]] = {}
    with open_stores(None) as stores:
        for _ in range(given.repeat):
            for name, measure in DRAINS.items():
                costs.setdefault(name, []).append(measure(stores.main, given.jobs))
    print(f"{'µs a job, medians':28} {'wall':>6} {'workers':>8} {'server':>7}   of {os.cpu_count()} CPUs")
    for name, found in costs.items():
        wall, workers, server = (median(column) for column in zip(*found, strict=True))
        print(f"{name:28} {wall:6.1f} {workers:8.1f} {server:7.1f}   {(workers + server) / wall:.2f}")


def drain_loose(scratch: Scratch, jobs: int, processes: int = 1) -> Cost:
    """Jobs by themselves: W3, W4."""
    return cost(scratch, jobs, lambda bench: fill(bench, bench.noop, jobs), processes)


def drain_chains(scratch: Scratch, jobs: int) -> Cost:
    """Chains of two: F2."""
    return cost(scratch, jobs, lambda bench: fill(bench, ChainOfTwo(bench.noop), jobs // 2), processes=2)


def cost(scratch: Scratch, jobs: int, store: Callable[[BenchApp], None], processes: int) -> Cost:
    """Drain what is stored with workers."""
    with migrated(scratch) as bench:
        store(bench)
        settle(bench.app.url)
        before = server_cpu(bench.app.url)
        return of_run(drained(bench, Load(jobs), processes), before, bench.app.url)


def drain_bare(scratch: Scratch, jobs: int) -> Cost:
    """The same statements as those of W3 on bare connections."""
    with migrated(scratch) as bench:
        fill(bench, bench.noop, jobs)
        settle(bench.app.url)
        before = server_cpu(bench.app.url)
        with Children(bench.app.url, BATCH, program=program("drain"), ends=True) as children:
            children.go()
            return of_run(children.finish(jobs), before, bench.app.url)


def of_run(run: Drained, before: float, url: str) -> Cost:
    """Return what a run has cost; the CPU time of a worker includes its shutdown."""
    microseconds = 1_000_000 / run.ended
    return Cost(run.seconds * microseconds, run.cpu * microseconds, (server_cpu(url) - before) * microseconds)


def server_cpu(url: str) -> float:
    """Return the CPU time of a server of this machine so far, in seconds: of its main process and all others."""
    with closing(psycopg.connect(url)) as session:
        (main_process,) = _stat(session.info.backend_pid)[PARENT : PARENT + 1]
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    sessions = [stat for stat in map(_stat, numbers) if stat and stat[PARENT] == main_process]
    stats = [*sessions, _stat(int(main_process))]
    return sum(int(ticks) for stat in stats for ticks in stat[CPU_FIELDS]) / TICKS


def _stat(process: int) -> list[str]:
    """Return the fields of a process behind its name; none if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


DRAINS: dict[str, Any] = {
    "one process": drain_loose,
    "bare statements": drain_bare,
    "two processes": lambda scratch, jobs: drain_loose(scratch, jobs, processes=2),
    "two processes, chains of two": drain_chains,
}


if __name__ == "__main__":
    main()
