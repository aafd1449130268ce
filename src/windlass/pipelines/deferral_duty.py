"""The duty that ends executions which an open circuit has held up for too long."""

from __future__ import annotations

from typing import Final

from windlass import loggers
from windlass.domain.clock import MICROSECONDS
from windlass.feature import NodeTools
from windlass.runtime.duty import Duty
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import circuit_deferrals

logger = loggers.logger("windlass.pipelines")

NAME: Final = "circuit deferrals"
LONGEST_INTERVAL: Final = 60.0


def interval_for(longest: float) -> float:
    """Return how often to look: a tenth of the longest deferral, and at least once a minute."""
    return min(LONGEST_INTERVAL, max(longest / 10, 0.1))


class DeferralDuty(Duty):
    """Fails what has waited for longer than `pipelines.max_circuit_deferral`."""

    def __init__(self, lease: LeaseHolder, longest: float, tools: NodeTools) -> None:
        super().__init__(NAME, lease, tools.errors)
        self._lease = lease
        self._longest_us = int(longest * MICROSECONDS)
        self._publish = tools.publish
        self._follow_ups = tools.follow_ups

    async def batch(self) -> bool:
        """Fail one batch; return True while there was any."""
        found = await self._lease.run(circuit_deferrals.fail_deferred, self._longest_us, self._follow_ups)
        for job in found.failed:
            logger.error("job %s (%s) failed for good: its circuit was open for too long", job.job_id, job.target)
        self._publish(found.failed, found.effects)
        return bool(found.failed)
