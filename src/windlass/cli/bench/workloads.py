"""The table of workloads, and how each is run: several times if asked, in turns with what it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, Final, NamedTuple

from windlass.cli.bench import (
    batch_workloads,
    churn_workloads,
    flow_workloads,
    measure,
    pipeline_workloads,
    relay_workloads,
    schedule_workloads,
)
from windlass.cli.bench.latency import STEADY, latency
from windlass.cli.bench.measure import Load, Measure
from windlass.cli.bench.scratch import Scratch, Stores

RATE, MILLISECONDS, MEGABYTES, ITEMS, EXECUTIONS = "jobs/s", "ms", "MB", "items/s", "executions/s"
RATES: Final = frozenset({RATE, ITEMS, EXECUTIONS})


class Workload(NamedTuple):
    """One line of the table."""

    key: str
    title: str
    jobs: int
    run: Callable[[Scratch, Load], Measure]
    unit: str = RATE
    on_sqlite: bool = False
    beside: Callable[[Scratch, Load], float | None] | None = None
    """Measured in turns with it, to compare with; its value is None where the store has nothing of the kind."""


def _limited(key: str, title: str, job: measure.JobOf) -> Workload:
    return Workload(key, title, 20_000, partial(measure.drain, job=job), beside=measure.drain_plain)


WORKLOADS: Final = (
    Workload("W1", "enqueue one by one", 2_000, measure.enqueue_each),
    Workload("W1c", "enqueue, 32 callers", 20_000, partial(measure.enqueue_each, callers=measure.CALLERS)),
    Workload("W2", "enqueue in bulk", 50_000, measure.enqueue_bulk),
    Workload("W3", "drain, one process", 20_000, measure.drain),
    Workload("W4", "drain, two processes", 20_000, partial(measure.drain, processes=2)),
    Workload("W5", "idle wakeup, p50 / p99", 200, latency, MILLISECONDS),
    Workload("W6", "drain among 25 x more", 20_000, measure.drain_beside_many),
    Workload("W7", "5 ms on 20 threads", 10_000, measure.drain_threads),
    Workload("W8", "drain, SQLite", 20_000, measure.drain, on_sqlite=True),
    Workload("W9", "peak memory", 200_000, measure.memory, MEGABYTES),
    Workload("W10", "1,000 a second, p50 / p99", 5_000, partial(latency, every=STEADY), MILLISECONDS),
    Workload("W11", "drain, 80 levels", 20_000, measure.drain_mixed, beside=measure.drain_plain),
)
CHURN: Final = (
    Workload("W12", "rounds", 100_000, churn_workloads.churn, beside=churn_workloads.drain_once),
    Workload(
        *("W12s", "rounds, snapshot held", 100_000, partial(churn_workloads.churn, snapshot=True)),
        beside=churn_workloads.drain_once,
    ),
)
"""The last of ten rounds through the same tables, in turns with one drain of a new database."""
LIMITED: Final = (
    _limited("L1", "drain, limited queue", measure.in_limited_queue),
    _limited("L2", "drain, permits", measure.with_permit),
    _limited("L3", "drain, circuit", measure.behind_circuit),
)
"""In turns with the same drain without limits."""
FLOWS: Final = (
    Workload("F1", "one batch", 100_000, batch_workloads.drain_batch, beside=batch_workloads.drain_loose),
    Workload("F2", "chains of two", 20_000, flow_workloads.drain_chains, beside=flow_workloads.drain_loose),
    Workload("F3", "group and its join", 10_000, flow_workloads.drain_group, beside=flow_workloads.drain_loose_members),
    Workload(
        *("F4", "one batch, small commits", 10_000, batch_workloads.drain_batch_threads),
        beside=batch_workloads.drain_loose_threads,
    ),
    Workload("F5", "load a batch", 100_000, batch_workloads.load_batch),
    Workload("F6", "load, peak memory", 1_000_000, batch_workloads.load_memory, MEGABYTES),
)
"""By two processes, in turns with the same number of loose jobs; and the loading of a batch."""
SCHEDULES: Final = (
    Workload("S1", "schedules due at once", 10_000, schedule_workloads.fire_all),
    Workload("S2", "look for the next tick", 10_000, schedule_workloads.look, MILLISECONDS),
)
"""Of as many schedules as others have jobs."""
PIPELINES: Final = (
    Workload("P1", "items, one step", 10_000, partial(pipeline_workloads.run_items, steps=1), ITEMS),
    Workload("P2", "items, three steps", 10_000, partial(pipeline_workloads.run_items, steps=3), ITEMS),
    Workload("P3", "executions, five steps", 1_000, pipeline_workloads.run_quick, EXECUTIONS),
    Workload("P4", "many items, one step", 200_000, partial(pipeline_workloads.run_items, steps=1), ITEMS),
    Workload("P5", "many items, peak memory", 200_000, pipeline_workloads.run_memory, MEGABYTES),
    Workload("P6", "items answered from outside", 10_000, pipeline_workloads.run_waits, ITEMS),
    Workload("P7", "publication, one subscriber", 10_000, pipeline_workloads.run_publication, ITEMS),
    Workload("P8", "relay to HTTP", 5_000, relay_workloads.run_relay, ITEMS),
    Workload(
        *("P9", "relay beside a dead destination", 5_000, partial(relay_workloads.run_relay, dead=True), ITEMS),
        beside=relay_workloads.without_dead,
    ),
)
"""Executions of pipelines by one worker."""
BY_KEY: Final = {
    workload.key.upper(): workload for workload in (*WORKLOADS, *CHURN, *LIMITED, *FLOWS, *SCHEDULES, *PIPELINES)
}


class Result(NamedTuple):
    """All runs of one workload, by their medians."""

    workload: Workload
    store: str
    jobs: int
    value: float
    values: list[float]
    floor: float | None
    """Of what was measured beside it."""
    floors: list[float]
    ratio: float | None
    """The median of the pairs: both sides of a pair were measured one after the other."""
    problems: list[str]
    details: Mapping[str, Any]


def run(workload: Workload, stores: Stores, load: Load, repeat: int, progress: Callable[[str], None]) -> Result:
    """Measure one workload; a load of no jobs means as many as the workload asks for."""
    scratch = stores.sqlite if workload.on_sqlite else stores.main
    load = load._replace(jobs=load.jobs or workload.jobs)
    measures: list[Measure] = []
    floors: list[float] = []
    for number in range(1, repeat + 1):
        turn = f"{workload.key} {workload.title}, {load.jobs:,} jobs, run {number} of {repeat}"
        if workload.beside is not None:
            progress(f"{turn} (floor)")
            floor = workload.beside(scratch, load)
            floors += [] if floor is None else [floor]
        progress(turn)
        measures.append(workload.run(scratch, load))
    return _result(workload, scratch.description, load.jobs, measures, floors)


def _result(workload: Workload, store: str, jobs: int, measures: list[Measure], floors: list[float]) -> Result:
    values = [measure.value for measure in measures]
    details = {name: median(one.details[name] for one in measures) for name in measures[0].details}
    ratios = [] if workload.unit not in RATES else [value / floor for value, floor in zip(values, floors, strict=False)]
    problems = [problem for measure in measures for problem in measure.problems]
    floor, ratio = median(floors) if floors else None, median(ratios) if ratios else None
    return Result(workload, store, jobs, median(values), values, floor, floors, ratio, problems, details)
