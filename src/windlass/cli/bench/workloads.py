"""The table of workloads: what each measures, how many jobs it takes, its floor, and what it should reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from windlass.cli.bench import latency, measure
from windlass.cli.bench.measure import Load, Measure, Progress
from windlass.cli.bench.scratch import Scratch

RATE, MILLISECONDS, MEGABYTES = "jobs/s", "ms", "MB"


@dataclass(frozen=True)
class Result:
    """All runs of one workload, by their medians."""

    key: str
    store: str
    jobs: int
    value: float
    values: list[float]
    floor: float | None
    floors: list[float]
    ratio: float | None
    problems: list[str]
    details: Mapping[str, float]


Met = Callable[[Result, Mapping[str, Result]], bool | None]
"""Whether a result reaches its target; None when what it is compared with was not measured."""


@dataclass(frozen=True)
class Workload:
    """One line of the table."""

    key: str
    title: str
    about: str
    unit: str
    jobs: int
    run: Callable[[Scratch, Load, Progress], Measure]
    floor: Callable[[Scratch, int], float | None]
    target: str
    met: Met
    on_sqlite: bool = False


def _at_least(value: float) -> Met:
    return lambda result, others: result.value >= value


def of_floor(share: float) -> Met:
    """A share of what was measured in turns with it."""
    return lambda result, others: None if result.ratio is None else result.ratio >= share


def _beside_peers(result: Result, others: Mapping[str, Result]) -> None:
    """Judged by benchmarks/peers/run.py, which measures both in one run."""


def _of_w3(share: float) -> Met:
    return lambda result, others: result.value >= share * others["W3"].value if "W3" in others else None


def _quick(result: Result, others: Mapping[str, Result]) -> bool:
    return result.value <= 1.0 and result.details["p99"] <= 10.0


def _small(result: Result, others: Mapping[str, Result]) -> bool:
    return result.value <= 90


WORKLOADS: Final = (
    Workload(
        "W1",
        "enqueue one by one",
        "one caller, each call awaited",
        RATE,
        2_000,
        measure.enqueue_one_by_one,
        partial(measure.floor_enqueue, at_a_time=1),
        "≥ 1.1 x PgQueuer",
        _beside_peers,
    ),
    Workload(
        "W1c",
        "enqueue, 32 callers",
        "32 concurrent callers, each call awaited",
        RATE,
        20_000,
        measure.enqueue_together,
        partial(measure.floor_enqueue, at_a_time=measure.CALLERS),
        "≥ 15,000/s",
        _at_least(15_000),
    ),
    Workload(
        "W2",
        "enqueue in bulk",
        "one call, a tenth of the jobs with idempotency keys",
        RATE,
        50_000,
        measure.enqueue_bulk,
        measure.floor_bulk,
        "≥ 40,000/s",
        _at_least(40_000),
    ),
    Workload(
        "W3",
        "drain, one process",
        "no-op coroutine jobs that wait, one worker process",
        RATE,
        20_000,
        measure.drain,
        measure.floor_drain,
        "≥ 60 % of floor",
        of_floor(0.6),
    ),
    Workload(
        "W4",
        "drain, two processes",
        "the same with two worker processes",
        RATE,
        20_000,
        partial(measure.drain, processes=2),
        partial(measure.floor_drain, processes=2),
        "≥ 50 % of floor",
        of_floor(0.5),
    ),
    Workload(
        "W5",
        "idle wakeup, p50 / p99",
        "a job each 50 ms: from enqueue returned to body started",
        MILLISECONDS,
        200,
        latency.latency,
        latency.floor_latency,
        "≤ 1 / 10 ms",
        _quick,
    ),
    Workload(
        "W6",
        "drain among 25 x more",
        "W3 with 25 times as many waiting, half of them future and of high priority",
        RATE,
        20_000,
        measure.drain_beside_many,
        measure.floor_drain,
        "≥ 90 % of W3",
        _of_w3(0.9),
    ),
    Workload(
        "W7",
        "5 ms on 20 threads",
        "sync jobs that hold a thread for 5 ms",
        RATE,
        10_000,
        measure.drain_threads,
        measure.floor_threads,
        "≥ 3,600/s",
        _at_least(3_600),
    ),
    Workload(
        "W8",
        "drain, SQLite",
        "W3 on SQLite",
        RATE,
        20_000,
        measure.drain,
        measure.floor_drain,
        "≥ 8 x Huey",
        _beside_peers,
        on_sqlite=True,
    ),
    Workload(
        "W9",
        "peak memory",
        "of one worker process that drains",
        MEGABYTES,
        200_000,
        measure.memory,
        measure.floor_memory,
        "≤ 90 MB",
        _small,
    ),
)
