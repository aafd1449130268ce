"""What a run shows: a line while it goes on, a table at the end."""

import sys
from collections import Counter
from itertools import pairwise
from math import inf
from statistics import median

from tests.chaos.driver import Standing
from tests.chaos.facts import Facts
from tests.chaos.leases import worker_of
from tests.chaos.oracle import Violation
from windlass.domain.clock import monotonic

LINE_EVERY = 5.0
MAX_SHOWN = 20


class Progress:
    """One line that is rewritten at a terminal, a new one every few seconds elsewhere."""

    def __init__(self) -> None:
        self._drawn = sys.stdout.isatty()
        self._last = float("-inf")

    def __call__(self, standing: Standing) -> None:
        now = monotonic()
        if self._drawn:
            print(f"\r\x1b[K{line(standing)}", end="", flush=True)
        elif now - self._last >= LINE_EVERY:
            self._last = now
            print(line(standing), flush=True)

    def close(self) -> None:
        if self._drawn:
            print()


def line(standing: Standing) -> str:
    """How a run stands."""
    faults = standing.faults
    return (
        f"{monotonic() - standing.began:6.1f} s  {standing.sight.ended:,} jobs ended, {standing.sight.live:,} live  "
        f"{faults['kill']}/{standing.options.kills} kills  {faults['stop'] + faults['nap']} stops  "
        f"{faults['restart'] + faults['cut']} outages  {faults['jump']} clock jumps  {standing.workers} workers  "
        f"{len(standing.violations)} violations"
    )


def recoveries(facts: Facts) -> list[float]:
    """For every run that a kill cut off: seconds until its job, or step, was running again somewhere else.

    A worker that was killed while it stood still may have lost its jobs before: those are not counted.
    """
    found = []
    killed = {fault.pid: fault.at for fault in facts.account.faults if fault.kind == "kill"}
    for runs in (*facts.runs.values(), *facts.steps.values()):
        for run, later in pairwise(runs):
            at = killed.get(worker_of(run.node), inf)
            if run.started <= at < later.started and (run.ended is None or run.ended > at):
                found.append(later.started - at)
    return found


def table(facts: Facts, standing: Standing, violations: list[Violation]) -> list[tuple[str, str]]:
    """What happened, in numbers."""
    statuses: dict[str, int] = {}
    for row in facts.tables.done:
        statuses[row.status] = statuses.get(row.status, 0) + 1
    outcomes: dict[str, int] = {}
    for attempt in facts.tables.history:
        outcomes[attempt.outcome] = outcomes.get(attempt.outcome, 0) + 1
    executions = dict(Counter(row.status for row in facts.tables.executions))
    again = recoveries(facts)
    lost = sum(job not in facts.done for job in {entry.job for entry in facts.account.accepted})
    double = sum(violation.rule == "an_outcome_is_written_once_by_its_holder" for violation in violations)
    return [
        ("store, seed", f"{standing.options.store}, {standing.options.seed}"),
        ("lasted", f"{facts.ended - facts.began:.1f} s; lease {facts.lease_seconds:g} s"),
        ("jobs", f"{len(facts.tables.jobs):,}: {_counts(statuses)}"),
        ("claims", f"{len(facts.tables.history):,}: {_counts(outcomes)}"),
        ("bodies, steps entered", f"{len(facts.account.runs):,}, {len(facts.account.steps):,}"),
        ("executions", f"{len(facts.tables.executions):,}: {_counts(executions)}"),
        ("items handed over", f"{len(facts.tables.handoffs):,}"),
        ("faults", _counts(dict(standing.faults))),
        ("nodes given up", f"{len({taken.node for taken in facts.account.taken}):,}"),
        ("started again after SIGKILL", _seconds(again)),
        ("lost, double commits", f"{lost}, {double}"),
        ("violations", str(len(violations))),
    ]


def show(facts: Facts, standing: Standing, violations: list[Violation]) -> None:
    rows = table(facts, standing, violations)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name.ljust(width)}  {value}")
    for violation in violations[:MAX_SHOWN]:
        print(f"  {violation}")
    if len(violations) > MAX_SHOWN:
        print(f"  … and {len(violations) - MAX_SHOWN} more")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {word}" for word, count in sorted(counts.items(), key=lambda item: -item[1])) or "none"


def _seconds(values: list[float]) -> str:
    if not values:
        return "no job was running when its worker was killed"
    return f"median {median(values):.2f} s, worst {max(values):.2f} s, of {len(values)} jobs and steps"
