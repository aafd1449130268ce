"""The service that fires schedules. Every node runs it: with one for all, its loss would cost the time of a lease."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from windlass import loggers
from windlass.domain.clock import MICROSECONDS, from_micros, monotonic
from windlass.domain.stored_schedule import SkippedTick
from windlass.feature import NodeTools
from windlass.recurring.reconciliation import Reconciliation
from windlass.runtime.failpoints import reached
from windlass.runtime.service import Service
from windlass.runtime.verbs import adrive
from windlass.stores.plans import ticks

logger = loggers.logger("windlass.schedules")

LONGEST_SLEEP: Final = 5.0
"""Seconds after which the store is queried for the next tick in any case."""
SUSPENDED_FOR: Final = 60.0
"""Seconds for which a schedule that cannot be planned here is left to other nodes."""
NOT_OURS: Final = 0.1
"""Seconds to wait while another node fires what is due."""


class Ticker(Service):
    """Sleeps to the first tick, and fires what is due in bounded transactions."""

    def __init__(
        self, tools: NodeTools, reconciliation: Reconciliation, misfire_after: float, known_queues: Collection[str]
    ) -> None:
        super().__init__("ticker", tools.errors, tools.schedule_changes)
        self._tools = tools
        self._reconciliation = reconciliation
        self._misfire_after_us = int(misfire_after * MICROSECONDS)
        self._known_queues = known_queues
        self._suspensions: dict[str, float] = {}
        self._logged: set[str] = set()

    async def tick(self) -> float | None:
        """Fire what is due; return the seconds until the next tick."""
        await adrive(self._reconciliation.retry())
        aside = self._suspended()
        first = await self._tools.database.aread(ticks.next_tick, aside)
        if first is None:
            return LONGEST_SLEEP
        if first.next_at > first.now:
            return min((first.next_at - first.now) / MICROSECONDS, LONGEST_SLEEP)
        return await self._fire(aside)

    async def _fire(self, aside: Sequence[str]) -> float:
        database = self._tools.database
        fired = await database.arun(ticks.fire, aside, self._misfire_after_us, self._known_queues)
        reached("tick.after_commit", lambda: fired.runs > 0)
        self._tools.publish((), fired.effects)
        log_skipped(fired.effects.skipped)
        self._suspend(fired.unplannable)
        return 0.0 if fired.advanced or fired.unplannable else NOT_OURS

    def _suspended(self) -> list[str]:
        now = monotonic()
        self._suspensions = {schedule: until for schedule, until in self._suspensions.items() if until > now}
        return list(self._suspensions)

    def _suspend(self, found: Sequence[ticks.Unplannable]) -> None:
        for one in found:
            self._suspensions[one.schedule_id] = monotonic() + SUSPENDED_FOR
            if one.schedule_id not in self._logged:
                self._logged.add(one.schedule_id)
                logger.error("schedule %s cannot be planned here, so it is left to other nodes: %s", one.key, one.why)


def log_skipped(skipped: Sequence[SkippedTick]) -> None:
    """Log ticks that did not fire."""
    for one in skipped:
        first = from_micros(one.tick).isoformat()
        logger.warning("schedule %s: %d ticks from %s on did not fire: %s", one.key, one.count, first, _WHY[one.why])


_WHY: Final = {
    "missed": "they were missed, and its misfire policy does not fire them",
    "overlap": "an earlier run has not ended",
    "queue_full": "100 earlier runs are waiting",
}
