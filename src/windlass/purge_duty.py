"""The purge duty: deletes rows older than their retention at set times of day, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windlass import loggers
from windlass.domain.clock import MICROSECONDS
from windlass.domain.cron import Cron
from windlass.domain.rhythm import AtTimes
from windlass.feature import NodeTools
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plan import Plan
from windlass.stores.plans.dead_letters import FIRST, Purged

logger = loggers.logger("windlass.purge")

BATCH = 500

PurgePlan = Callable[[Dialect, int, int, tuple[int, str]], Plan[Purged]]
"""Deletes up to so many rows (the second number) older than so many microseconds, after a given one."""


class PurgeDuty(Duty):
    """Deletes until all rows have been checked. An empty batch is not the end: all of its rows may have to stay."""

    def __init__(self, lease: LeaseHolder, plan: PurgePlan, age: float, what: str, errors: ErrorHandling) -> None:
        super().__init__(f"purge of {what}", lease, errors)
        self._lease = lease
        self._plan = plan
        self._age_us = int(age * MICROSECONDS)
        self._what = what
        self._deleted = 0
        self._after = FIRST

    def begin(self) -> None:
        """Start from the oldest."""
        self._deleted = 0
        self._after = FIRST

    async def batch(self) -> bool:
        """Delete one batch under the lease."""
        deleted, after = await self._lease.run(self._plan, self._age_us, BATCH, self._after)
        reached("purge.after_commit", lambda: deleted > 0)
        self._deleted += deleted
        if after is not None:
            self._after = after
            return True
        if self._deleted:
            logger.info("purged %d %s", self._deleted, self._what)
        return False


def purge_duties(
    what: str, plan: PurgePlan, age: float, cron: str | None
) -> Callable[[NodeTools], Sequence[PurgeDuty]]:
    """Return the duty that deletes `what` is older than `age` seconds, at times of day in UTC; None: never."""

    def duties(tools: NodeTools) -> Sequence[PurgeDuty]:
        if cron is None:
            return ()
        lease = tools.lease(f"purge of {what}", AtTimes(Cron.parse(cron)))
        return (PurgeDuty(lease, plan, age, what, tools.errors),)

    return duties
