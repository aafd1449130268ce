"""The statistics duty: adds up the counts of every flush by minute, and deletes them after a month.

Reads add up what is not added up yet, so that nothing waits for this duty, and numbers are exact without it. It keeps
reads cheap, and the table of counts short.
"""

from __future__ import annotations

from collections.abc import Sequence

from windlass.domain.rhythm import Every
from windlass.feature import Feature, NodeTools
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import statistics
from windlass.stores.plans.leases import STATISTICS

BATCH = 2000
"""Number of counts added up in one transaction."""
KEPT_MINUTES = 30 * 24 * 60


def feature(interval: float) -> Feature:
    """Return statistics as a feature of an application; `interval` is in seconds."""

    def duties(tools: NodeTools) -> Sequence[Statistics]:
        return (Statistics(tools.lease(STATISTICS, Every(interval)), tools.errors),)

    return Feature("statistics", duties=duties)


class Statistics(Duty):
    """Adds up the counts in one pass, and deletes some of the old ones."""

    def __init__(self, lease: LeaseHolder, errors: ErrorHandling) -> None:
        super().__init__("statistics", lease, errors)
        self._lease = lease

    async def batch(self) -> bool:
        """Move counts into their minutes in one transaction, which is refused once the lease is lost."""
        taken = await self._lease.run(statistics.roll_up, BATCH)
        reached("statistics.after_commit", lambda: taken > 0)
        older = await self._lease.run(statistics.forget, KEPT_MINUTES)
        return older or taken == BATCH
