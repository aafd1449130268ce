"""Expiry: cancels jobs that have not started by their expiry time, even where no node claims them."""

from __future__ import annotations

from windlass import loggers
from windlass.publisher import Publisher
from windlass.runtime.failpoints import reached
from windlass.stores.ending import FollowUps
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import moves

logger = loggers.logger("windlass.sweeper")

BATCH = 500


class Expiry:
    """A part of the sweeper."""

    def __init__(self, follow_ups: FollowUps, publisher: Publisher) -> None:
        self._follow_ups = follow_ups
        self._publisher = publisher

    async def cancel_expired(self, lease: LeaseHolder) -> int:
        """Cancel one batch under the sweeper's lease; return how many jobs it canceled."""
        expired = await lease.run(moves.cancel_expired, BATCH, self._follow_ups)
        reached("expiry.after_commit", lambda: bool(expired.ended))
        if expired.ended:
            logger.info("canceled %d jobs that expired before they could start", len(expired.ended))
        self._publisher.publish(expired.ended, expired.effects)
        return len(expired.ended)
