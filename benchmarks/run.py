"""The workloads of `windlass bench` in turns with their floors, judged by their targets, every table checked.

    make bench ARGS="--workload W3,W8 --repeat 5"     # or:
    python -m benchmarks.run [--store URL] [--workload W1,W3] [--jobs N] [--concurrency N] [--repeat N] [--no-floor]

Exit codes: 0 if every job of every workload ran exactly once, else 1; missed targets are shown, no error.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.floors import measures, pipelines
from benchmarks.verify import verify
from windlass.cli.bench import report
from windlass.cli.bench.latency import STEADY
from windlass.cli.bench.measure import CALLERS, CONCURRENCY, Load
from windlass.cli.bench.scratch import Scratch, open_stores
from windlass.cli.bench.workloads import BY_KEY, WORKLOADS, Result, Workload, run
from windlass.cli.output import drawn
from windlass.cli.tables import Cell, Column, table

Met = Callable[[Result, Mapping[str, Result]], bool | None]
"""Whether a result reaches its target; None when what it is compared with was not measured."""


class Target(NamedTuple):
    text: str
    met: Met


class Goal(NamedTuple):
    """What a workload is compared with, and what it should reach."""

    floor: Callable[[Scratch, int], float | None]
    target: Target


def at_least(value: int) -> Target:
    return Target(f"≥ {value:,}/s", lambda result, others: result.value >= value)


def of_floor(percent: int) -> Target:
    return Target(
        f"≥ {percent} % of floor",
        lambda result, others: None if result.ratio is None else result.ratio >= percent / 100,
    )


def of_loose(percent: int) -> Target:
    """Compared with as many loose jobs, measured in turns with it."""
    return Target(f"≥ {percent} % of loose", of_floor(percent).met)


def of_drain(percent: int) -> Target:
    """Compared with W3, measured in turns with it."""
    return Target(f"≥ {percent} % of W3", of_floor(percent).met)


def of_unlimited(percent: int) -> Target:
    """Compared with the same drain without limits, measured in turns with it."""
    return Target(f"≥ {percent} % of no limit", of_floor(percent).met)


def on_postgres(target: Target) -> Target:
    return Target(
        f"{target.text}, PostgreSQL",
        lambda result, others: target.met(result, others) if result.store.startswith("PostgreSQL") else None,
    )


def of_w3(percent: int) -> Target:
    return Target(
        f"≥ {percent} % of W3",
        lambda result, others: result.value >= percent / 100 * others["W3"].value if "W3" in others else None,
    )


def within(p50: float) -> Target:
    """Milliseconds."""
    return Target(f"≤ {p50} / 10 ms", lambda result, others: result.value <= p50 and result.details["p99"] <= 10.0)


def beside(peer: str) -> Target:
    """Judged by benchmarks/peers/run.py, which measures both in one run."""
    return Target(peer, lambda result, others: None)


GOALS = {
    "W1": Goal(measures.enqueue, beside("≥ 1.1 x PgQueuer")),
    "W1c": Goal(partial(measures.enqueue, at_a_time=CALLERS), at_least(15_000)),
    "W2": Goal(measures.enqueue_bulk, at_least(40_000)),
    "W3": Goal(measures.drain, of_floor(75)),
    "W4": Goal(partial(measures.drain, processes=2), of_floor(75)),
    "W5": Goal(
        measures.latency,
        within(0.75),
    ),
    "W6": Goal(measures.drain, of_w3(95)),
    "W7": Goal(measures.threads, at_least(3_600)),
    "W8": Goal(measures.drain, beside("≥ 10 x Huey")),
    "W9": Goal(measures.memory, Target("≤ 90 MB", lambda result, others: result.value <= 90)),
    "W10": Goal(partial(measures.latency, every=STEADY), within(1.5)),
}
PIPELINES = {
    "P1": Goal(partial(pipelines.run_items, steps=1), at_least(10_000)),
    "P2": Goal(partial(pipelines.run_items, steps=3), at_least(6_000)),
    "P3": Goal(pipelines.run_quick, at_least(2_500)),
    "P4": Goal(partial(pipelines.run_items, steps=1), at_least(10_000)),
    "P5": Goal(
        lambda scratch, count: None,
        Target("≤ 20 % over 10,000", lambda result, others: result.details["growth"] <= 0.2),
    ),
}
GOALS |= PIPELINES
BESIDE = {
    "W11": of_drain(75),
    "W12": of_drain(90),
    "W12s": of_drain(90),
    "L1": of_unlimited(80),
    "L2": of_unlimited(85),
    "L3": of_unlimited(80),
    "S1": beside("each fired once"),
    "S2": beside("none fired"),
    "P6": at_least(5_000),
    "P7": at_least(5_000),
    "P8": at_least(1_000),
    "P9": Target("≥ 90 % of P8", of_floor(90).met),
    "F1": of_loose(80),
    "F2": of_loose(85),
    "F3": beside("joined once"),
    "F4": of_loose(75),
    "F5": on_postgres(at_least(20_000)),
    "F6": beside("all stored"),
}


def target(workload: Workload) -> Target:
    return GOALS[workload.key].target if workload.key in GOALS else BESIDE[workload.key]


def with_floor(workload: Workload) -> Workload:
    if workload.key not in GOALS:
        return workload
    floor = GOALS[workload.key].floor
    return workload._replace(beside=lambda scratch, load: floor(scratch, load.jobs))


def show(results: Sequence[Result]) -> None:
    by_key = {result.workload.key: result for result in results}
    rows = []
    for result in results:
        wanted = target(result.workload)
        mark, style = {True: (" ✓", "green"), False: (" ✗", "red"), None: ("", "dim")}[wanted.met(result, by_key)]
        rows.append([*report.row(result), Cell(wanted.text + mark, style)])
    table((*report.COLUMNS, Column("target")), rows)


def as_json(results: Sequence[Result]) -> str:
    by_key = {result.workload.key: result for result in results}
    facts = report.as_json(results)
    for result, described in zip(results, facts["results"], strict=True):
        wanted = target(result.workload)
        described |= {"target": wanted.text, "met": wanted.met(result, by_key)}
    return json.dumps(facts, indent=2)


def chosen(text: str) -> list[Workload]:
    names = text.upper().split(",")
    unknown = set(names) - set(BY_KEY)
    if unknown:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(BY_KEY)}, got {text!r}")
    return [workload for key, workload in BY_KEY.items() if key in names]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store")
    parser.add_argument("--workload", "-w", type=chosen, default=list(WORKLOADS))
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--no-floor", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    logging.getLogger("windlass").addHandler(logging.NullHandler())
    workloads = asked.workload if asked.no_floor else [with_floor(workload) for workload in asked.workload]
    load = Load(asked.jobs, asked.concurrency, verify)
    with open_stores(asked.store) as stores:
        if not asked.json:
            report.introduce(stores, workloads, asked.concurrency)
        with report.progress(drawn() and not asked.json) as bar:
            results = [run(workload, stores, load, asked.repeat, bar) for workload in workloads]
    if asked.json:
        sys.stdout.write(as_json(results) + "\n")
    else:
        show(results)
    return report.exit_code(results)


if __name__ == "__main__":
    raise SystemExit(main())
