"""Expiry: jobs that have not started by the time they were given are canceled, also where nobody claims them."""

from __future__ import annotations

from uuid import UUID

from windlass import loggers
from windlass.domain.transition import EXPIRED
from windlass.events.bus import EventBus
from windlass.events.types import JobCanceled
from windlass.runtime.failpoints import reached
from windlass.spi import Clock
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import moves
from windlass.stores.plans.moves import Steered

logger = loggers.logger("windlass.sweeper")

BATCH = 500


class Expiry:
    """A part of the sweeper."""

    def __init__(self, bus: EventBus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    async def cancel_expired(self, lease: LeaseHolder) -> int:
        """One batch, under the sweeper's lease; answers how many jobs it canceled."""
        expired = await lease.run(moves.cancel_expired, BATCH)
        reached("expiry.after_commit", lambda: bool(expired))
        if expired:
            logger.info("%d jobs expired before they could start; they are canceled", len(expired))
        if expired and self._bus.wanted(JobCanceled):
            self._bus.publish([self._event(job) for job in expired])
        return len(expired)

    def _event(self, job: Steered) -> JobCanceled:
        return JobCanceled(
            job_id=UUID(job.job_id),
            target=job.target,
            queue=job.queue,
            correlation_id=job.correlation_id,
            at=self._clock.now(),
            reason=EXPIRED,
        )
