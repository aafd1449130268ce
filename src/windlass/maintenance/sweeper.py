"""The sweeper: repeats checks whose usual trigger may have been missed.

It covers leases and permits of dead nodes, jobs running on dead nodes (recovery requeues them), expired jobs, jobs
whose target no node has known for too long, and keys of resources unused for an hour. Its last pass is part of
`app.health()`.
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
NO_NODE_AFTER = 60.0
"""Seconds beyond its interval without a pass, after which there was probably no node at all."""


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
        self._longest_pause = interval + NO_NODE_AFTER
        self._database = database
        self._lease = lease
        self._recovery = recovery
        self._expiry = expiry
        self._idle_for = 0.0

    def begin(self) -> None:
        """Measure how long the cluster had no sweeper."""
        self._idle_for = self._lease.idle_for

    async def batch(self) -> bool:
        """Check everything once; return True while jobs had to be failed or canceled."""
        freed = await self._lease.run(leases.release_abandoned)
        if freed:
            logger.info("released %d leases of dead nodes", freed)
        await self._lease.run(permits.release_for_lost_nodes)
        await self._lease.run(permits.delete_idle_keys, IDLE_KEY_US)
        if await self._database.aread(cluster.anything_lost):
            self._recovery.wake()
        idle_for, self._idle_for = self._idle_for, 0.0
        if idle_for > self._longest_pause:
            await self._lease.run(unknown_targets.start_over)
        expired = await self._expiry.cancel_expired(self._lease)
        return await self._recovery.fail_unknown(self._lease) + expired > 0
