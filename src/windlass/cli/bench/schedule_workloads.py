"""S1, S2: many schedules: all due at once, and none of them due."""

from __future__ import annotations

from typing import Final

from windlass import every
from windlass.cli.bench.checks import Evidence
from windlass.cli.bench.jobs import PAYLOAD, BenchApp
from windlass.cli.bench.latency import percentile
from windlass.cli.bench.measure import Load, Measure, migrated
from windlass.cli.bench.scratch import Scratch
from windlass.domain.clock import micros, monotonic
from windlass.domain.priority import Priority
from windlass.recurring.schedule_options import ScheduleTimes
from windlass.stores.dialect import json_text
from windlass.stores.plans import schedules, ticks
from windlass.stores.plans.schedule_calls import ScheduledCall

HOUR_US: Final = 3_600_000_000
LATE_US: Final = 10_000_000
LOOKS: Final = 500


def fire_all(scratch: Scratch, load: Load) -> Measure:
    """S1: one node fires one tick of each; runs stored a second."""
    with migrated(scratch) as bench:
        now = micros(bench.app.parts.clock.now())
        _store(bench, load.jobs, now - HOUR_US)
        database, runs, started = bench.app.database, 0, monotonic()
        while (fired := database.run(ticks.fire, (), LATE_US)).advanced:
            runs += fired.runs
        seconds = monotonic() - started
        return Measure(runs / seconds, load.check(Evidence(bench.app, load.jobs)), {"seconds": seconds})


def look(scratch: Scratch, load: Load) -> Measure:
    """S2: the look for the next tick, which every node takes at least every five seconds; in milliseconds."""
    with migrated(scratch) as bench:
        _store(bench, load.jobs, None)
        database, found = bench.app.database, []
        for _ in range(LOOKS):
            started = monotonic()
            database.read(ticks.next_tick, ())
            found.append((monotonic() - started) * 1000)
        found.sort()
        details = {"p99": percentile(found, 0.99)}
        return Measure(percentile(found, 0.5), load.check(Evidence(bench.app, 0)), details)


def _store(bench: BenchApp, count: int, since: int | None) -> None:
    """Store schedules that fire every hour, from `since` or now on."""
    call = ScheduledCall(bench.noop.target, json_text(((PAYLOAD,), {})), "default", Priority.NORMAL.value).text
    times = ScheduleTimes.make(every(hours=1))
    wanted = [times.declare(f"bench:{number}", call) for number in range(count)]
    for start in range(0, count, schedules.AT_ONCE):
        bench.app.database.run(schedules.store, wanted[start : start + schedules.AT_ONCE], None, since)
