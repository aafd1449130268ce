"""The upkeep of schedules, by one node at a time: those that are no longer declared are retired."""

from __future__ import annotations

from typing import Final

from windlass import loggers
from windlass.domain.clock import MICROSECONDS, monotonic
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import schedule_upkeep
from windlass.stores.plans.schedule_upkeep import LiveDeclaration

logger = loggers.logger("windlass.schedules")

INTERVAL: Final = 10.0
"""Seconds between two passes: a schedule is retired within 30 seconds."""
DAY: Final = 86_400.0


class ScheduleUpkeep(Duty):
    """Retires schedules, forgets ticks, and once a day plans those with a time zone anew."""

    def __init__(self, lease: LeaseHolder, retire_after: float, errors: ErrorHandling) -> None:
        super().__init__("upkeep of schedules", lease, errors)
        self._lease = lease
        self._retire_after_us = int(retire_after * MICROSECONDS)
        self._checked: list[LiveDeclaration] = []
        self._daily_at = 0.0  # also in its first pass: a deploy may bring new rules of time zones

    async def batch(self) -> bool:
        """Do one batch; return True if there may be more."""
        if not await self._lease.run(schedule_upkeep.anything_stored):
            return False
        more = await self._retire()
        more = await self._lease.run(schedule_upkeep.forget_ticks) or more
        if not more and monotonic() >= self._daily_at:
            self._daily_at = monotonic() + DAY
            await self.daily()
        return more

    async def _retire(self) -> bool:
        """Retire what no live node declares, if anything has changed since the last pass."""
        declared = await self._lease.run(schedule_upkeep.live_declarations, self._retire_after_us)
        if declared == self._checked:
            return False
        for origin in sorted({one.origin for one in declared if one.matured}):
            retired = await self._lease.run(schedule_upkeep.retire, origin)
            if retired:
                shown = ", ".join(retired[:10])
                logger.info("retired %d schedules that %s no longer declares: %s", len(retired), origin, shown)
                return True
        self._checked = declared
        return False

    async def daily(self) -> None:
        """Recompute the ticks of schedules with a time zone, and delete schedules retired long ago."""
        after: str | None = ""
        while after is not None:
            planned = await self._lease.run(schedule_upkeep.replan, after)
            after = planned.next_after
            if planned.moved:
                shown = ", ".join(planned.moved[:10])
                logger.info(
                    "recomputed the next ticks of %d schedules by current time zone rules: %s",
                    len(planned.moved),
                    shown,
                )
        await self._lease.run(schedule_upkeep.delete_old)
