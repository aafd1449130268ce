"""The sweeper: looks again at what should have been done by itself, in case it was not.

What it looks at today: leases and permits of nodes that are no more, jobs that run on nodes that are no more (recovery
brings them back), jobs that have expired, jobs whose target no node has known for too long, and keys of resources that
nobody has used for an hour. When it last passed is part of `app.health()`.
"""

from __future__ import annotations

from windlass import loggers
from windlass.maintenance.expiry import Expiry
from windlass.maintenance.recovery import Recovery
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.stores.database import Database
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import cluster, leases, permits, unknown_targets

logger = loggers.logger("windlass.sweeper")


IDLE_KEY_US = 3_600_000_000
NOBODY_THERE = 60.0
"""Seconds beyond its interval for which the sweeper has not passed, after which there was probably no node at all."""


class Sweeper(Duty):
    """Every few seconds, on one node."""

    def __init__(
        self,
        database: Database,
        lease: LeaseHolder,
        recovery: Recovery,
        expiry: Expiry,
        interval: float,
        errors: ErrorHandling,
    ) -> None:
        super().__init__("sweeper", lease, errors)
        self._longest_pause = interval + NOBODY_THERE
        self._database = database
        self._lease = lease
        self._recovery = recovery
        self._expiry = expiry
        self._idle_for = 0.0

    def begin(self) -> None:
        """Take note of how long the cluster had no sweeper."""
        self._idle_for = self._lease.idle_for

    async def batch(self) -> bool:
        """One look at everything; again as long as jobs had to be given up, or expired."""
        freed = await self._lease.run(leases.free_abandoned)
        if freed:
            logger.info("%d leases of nodes that are no more were freed", freed)
        await self._lease.run(permits.leave_for_the_lost)
        await self._lease.run(permits.forget_idle_keys, IDLE_KEY_US)
        if await self._database.aread(cluster.anything_lost):
            self._recovery.wake()
        idle_for, self._idle_for = self._idle_for, 0.0
        if idle_for > self._longest_pause:
            await self._lease.run(unknown_targets.start_over)
        expired = await self._expiry.cancel_expired(self._lease)
        return await self._recovery.fail_unknown(self._lease) + expired > 0
