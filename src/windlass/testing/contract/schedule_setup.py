"""Helpers of the contracts of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windlass.domain.schedule_plan import CATCH_UP, Misfire, Overlap
from windlass.domain.stored_schedule import Declaration, ScheduleRow
from windlass.stores.plans import schedules, ticks
from windlass.stores.plans.schedule_calls import ScheduledCall
from windlass.testing.contract.workbench import SECOND, StoreContract, Workbench, new_job

MINUTE = 60
KEY = "sync"
SHOP = "shop:app"
LATE = 10 * SECOND
"""How late a tick may be before it is missed."""


def declaration(key: str = KEY, cron: str = "every(minutes=1)", **changes: Any) -> Declaration:
    """Return a schedule to store."""
    call = ScheduledCall.of(new_job(**changes.pop("job", {}))).text
    plain = Declaration(key, cron, "UTC", None, None, 0, Misfire.CATCH_UP.value, CATCH_UP, Overlap.ALLOW.value, call)
    return plain._replace(**changes)


class SchedulesContract(StoreContract):
    """Stores schedules, fires them, and looks at both."""

    def _store(self, bench: Workbench, *wanted: Declaration, origin: str | None = None) -> schedules.Stored:
        return bench.database.run(schedules.store, wanted or (declaration(),), origin)

    def _fire(self, bench: Workbench, aside: Sequence[str] = ()) -> ticks.Fired:
        return bench.database.run(ticks.fire, aside, LATE)

    def _pass_and_fire(self, bench: Workbench, seconds: float) -> ticks.Fired:
        bench.clock.advance(seconds)
        return self._fire(bench)

    def _row(self, bench: Workbench, key: str = KEY) -> ScheduleRow:
        return {row.key: row for row in bench.database.read(schedules.read, "")}[key]

    def _claimed_ticks(self, bench: Workbench) -> list[float]:
        """Claim all runs that are due; return when each was due, in seconds since the schedule was stored."""
        start = self._row(bench).anchor
        return sorted((claim.due_at - start) / SECOND for claim in bench.claim())
