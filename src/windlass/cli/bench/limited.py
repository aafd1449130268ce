"""Drains behind limits, beside the same drain without: `windlass bench --limited`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from windlass.cli.bench import verify
from windlass.cli.bench.jobs import BenchApp
from windlass.cli.bench.measure import CONCURRENCY, Load, Measure, Progress, drained_by, fill, migrated, rate
from windlass.cli.bench.processes import WORKER
from windlass.cli.bench.rows import QUEUE
from windlass.cli.bench.scratch import Scratch
from windlass.cli.bench.workloads import RATE, Workload, of_floor

WIDE: Final = 1_000_000
"""A limit that never holds anything up: what is measured is the counting."""
TENANTS: Final = 50

Setup = Callable[[BenchApp], dict[str, Any]]
"""Sets limits, and gives the options of the jobs behind them."""


def unlimited(bench: BenchApp) -> dict[str, Any]:
    """Nothing is limited."""
    del bench
    return {}


def limited_queue(bench: BenchApp) -> dict[str, Any]:
    """The queue has a limit of concurrency and a rate."""
    bench.app.limit_queue(QUEUE, concurrency=WIDE, rate=WIDE, create=True)
    return {}


def permits(bench: BenchApp) -> dict[str, Any]:
    """Every job needs a permit of one resource."""
    bench.app.configure_resource("bench", WIDE)
    return {"resource": "bench"}


def circuit(bench: BenchApp) -> dict[str, Any]:
    """Every job stands behind a circuit."""
    bench.app.configure_circuit("bench")
    return {"circuit": "bench"}


def drain(scratch: Scratch, load: Load, progress: Progress, *, setup: Setup) -> Measure:
    """One process drains what waits behind these limits."""
    with migrated(scratch) as (url, bench):
        fill(bench, bench.noop, load.jobs, **setup(bench))
        run = drained_by(WORKER, url, load.concurrency, 1, load.jobs, progress)
        return rate(run, verify.drained(url, load.jobs, run), concurrency=load.concurrency)


def _without(scratch: Scratch, count: int) -> float:
    return drain(scratch, Load(count, CONCURRENCY), lambda done: None, setup=unlimited).value


def _workload(key: str, title: str, about: str, setup: Setup) -> Workload:
    run = partial(drain, setup=setup)
    return Workload(key, title, about, RATE, 20_000, run, _without, "≥ 80 % of no limit", of_floor(0.8))


LIMITED: Final = (
    _workload("L1", "drain, limited queue", "a queue with a cap and a rate that hold nothing up", limited_queue),
    _workload("L2", "drain, permits", "all behind one resource that holds nothing up", permits),
    _workload("L3", "drain, circuit", "all behind one circuit that stays closed", circuit),
)
"""Their floor is the same drain without limits, in turns with them."""
