"""Recovery: jobs of a lost node become PENDING again, or FAILED once their crash budget is spent.

Every node checks and marks lost nodes with a guarded write, so that concurrent checks do no harm. Requeueing their jobs
is done by one node at a time, under a lease, so that each loss is handled and published once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection

from windlass import loggers
from windlass.domain.clock import MICROSECONDS
from windlass.domain.lease_times import lease_for
from windlass.domain.rhythm import Always
from windlass.domain.targets import how_to_import
from windlass.events.types import NodeLost
from windlass.maintenance.heartbeat import Heartbeat
from windlass.publisher import Publisher
from windlass.runtime.duty import LeaseLostError
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.runtime.service import Service
from windlass.settings import NodeSettings
from windlass.spi import Clock
from windlass.stores.database import Database
from windlass.stores.ending import FollowUps
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import cluster, leases, unknown_targets

logger = loggers.logger("windlass.recovery")

LEASE = 5.0
"""Seconds after which another node continues a recovery that has stopped in the middle."""
STEADY_BEFORE_RECOVERY = 7.0
"""Seconds for which this node must have held its own lease without a gap before it marks others as lost.

After a database outage no node could beat, and every node gets this time to reconnect and beat.
"""


class Recovery(Service):
    """Checks for lost nodes every few seconds."""

    def __init__(
        self,
        database: Database,
        settings: NodeSettings,
        follow_ups: FollowUps,
        publisher: Publisher,
        clock: Clock,
        heartbeat: Heartbeat,
        known_targets: Callable[[], Collection[str]],
        errors: ErrorHandling,
    ) -> None:
        super().__init__("recovery", errors)
        self._database = database
        self._settings = settings
        self._follow_ups = follow_ups
        self._publisher = publisher
        self._clock = clock
        self._heartbeat = heartbeat
        self._known_targets = known_targets
        lease = lease_for(settings.heartbeat_interval, settings.missed_heartbeats)
        self._steady_needed = min(lease, STEADY_BEFORE_RECOVERY)
        self._lease = LeaseHolder(database, leases.RECOVERY, lambda: heartbeat.node.id, LEASE, Always())

    async def tick(self) -> float | None:
        """Run one pass."""
        if self._heartbeat.steady_for() >= self._steady_needed:
            marked = await self._database.arun(cluster.mark_lost, self._heartbeat.node.id)
            reached("recovery.marked", lambda: marked > 0)
        if known := self._known_targets():
            await self._database.arun(unknown_targets.targets_known, known)
        if await self._database.aread(cluster.anything_lost) and await self._lease.take() <= 0:
            await self._recover_all()
        spread = random.uniform(0.8, 1.2)  # noqa: S311 - spreads nodes, guards nothing
        return self._settings.recovery_interval * spread

    async def _recover_all(self) -> None:
        lost: Counter[str] = Counter()
        try:
            while self.alive and (await self._recover(lost)).more:
                pass
        except LeaseLostError:
            return  # this node was suspended, and another one continues
        finally:
            self._publish_lost(lost)
        await self._lease.release(passed=True)

    async def _recover(self, lost: Counter[str]) -> cluster.Recovered:
        """Recover one batch; lost nodes are collected, to be published once no jobs are left."""
        found = await self._lease.run(cluster.recover, self._settings.crash_budget, self._follow_ups)
        reached("recovery.after_commit", lambda: bool(found.recovered or found.given_up))
        for node, count in found.recovered.items():
            logger.warning("node %s was lost; %d of its jobs are PENDING again", node, count)
        for job, node in found.given_up:
            logger.error("job %s failed for good: its worker was lost too often, the last time on node %s", job, node)
        if found.recovered or found.given_up or found.freed:  # failed jobs have released permits
            self._publisher.wakeups.changed()
        lost.update({**dict.fromkeys(found.forgotten, 0), **found.recovered})
        self._publisher.publish(found.ended, found.effects)
        return found

    def _publish_lost(self, lost: Counter[str]) -> None:
        """Publish each lost node once, even if it ran nothing: an operator may have to check its machine."""
        for node in (node for node, recovered in lost.items() if not recovered):
            logger.warning("node %s was lost; it had no jobs to recover", node)
        now = self._clock.now()
        self._publisher.events([NodeLost(at=now, node=node, recovered=recovered) for node, recovered in lost.items()])

    async def fail_unknown(self, lease: LeaseHolder) -> int:
        """Fail jobs whose target no node has known for too long; return how many. For the sweeper, under its lease."""
        waited = self._settings.unknown_target_after
        waited_us = int(waited * MICROSECONDS)
        found = await lease.run(unknown_targets.fail_unknown, waited_us, _error_for(waited), self._follow_ups)
        reached("sweep.after_commit", lambda: bool(found.failed))
        for job in found.failed:
            logger.error(
                "job %s failed for good: no node has known its target %s for %g s", job.job_id, job.target, waited
            )
        self._publisher.publish(found.failed, found.effects)
        return len(found.failed)


def _error_for(waited: float) -> Callable[[str], str]:
    return lambda target: (
        f"TargetNotFoundError: no node has known {target} for {waited:g} s; deploy it, or {how_to_import(target)}; "
        "then retry the job"
    )
