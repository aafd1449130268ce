"""Runs workloads, each several times if asked, floor and engine in turns so that a noisy moment meets both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple

from windlass.cli.bench.measure import Load, Measure
from windlass.cli.bench.scratch import Stores
from windlass.cli.bench.workloads import RATE, Result, Workload

Progress = Callable[[Workload, str, int, int], None]
"""Told the workload, what is going on, how many jobs are done, and of how many."""


class Plan(NamedTuple):
    """What is asked for."""

    jobs: int | None
    concurrency: int
    repeat: int
    floor: bool


def run(workload: Workload, stores: Stores, plan: Plan, progress: Progress) -> Result:
    """Measure one workload."""
    scratch = stores.sqlite if workload.on_sqlite else stores.main
    jobs = plan.jobs or workload.jobs
    measures: list[Measure] = []
    floors: list[float] = []
    for number in range(1, plan.repeat + 1):
        turn = f"run {number} of {plan.repeat}"
        if plan.floor:
            progress(workload, f"floor, {turn}", 0, jobs)
            floor = workload.floor(scratch, jobs)
            floors += [] if floor is None else [floor]
        progress(workload, turn, 0, jobs)
        load = Load(jobs, plan.concurrency)
        measures.append(workload.run(scratch, load, _told(workload, turn, jobs, progress)))
    return _result(workload, scratch.description, jobs, measures, floors)


def _told(workload: Workload, doing: str, jobs: int, progress: Progress) -> Callable[[int], None]:
    return lambda done: progress(workload, doing, done, jobs)


def _result(workload: Workload, store: str, jobs: int, measures: list[Measure], floors: list[float]) -> Result:
    values = [measure.value for measure in measures]
    middle = min(measures, key=lambda measure: abs(measure.value - median(values)))
    return Result(
        key=workload.key,
        store=store,
        jobs=jobs,
        value=median(values),
        values=values,
        floor=median(floors) if floors else None,
        floors=floors,
        ratio=_ratio(workload, values, floors),
        problems=[problem for measure in measures for problem in measure.problems],
        details=middle.details,
    )


def _ratio(workload: Workload, values: list[float], floors: list[float]) -> float | None:
    """The median of the pairs: both sides of a pair were measured one after the other."""
    if len(floors) != len(values) or workload.unit != RATE:
        return None
    return median(value / floor for value, floor in zip(values, floors, strict=True))


def verdicts(results: Mapping[str, Result], workloads: Mapping[str, Workload]) -> dict[str, bool | None]:
    """Which results reach their targets."""
    return {key: workloads[key.upper()].met(result, results) for key, result in results.items()}
