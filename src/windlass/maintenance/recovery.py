"""Recovery: what a lost node was running is PENDING again, or FAILED once its crash budget is spent.

Every node looks. Marking a node lost and bringing a job back are guarded writes, so several that look at once do no
harm.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from windlass import saying
from windlass.domain.clock import from_micros
from windlass.domain.heartbeat import lease_for
from windlass.domain.keys import error_fingerprint
from windlass.events.bus import EventBus
from windlass.events.types import Event, JobDeadLettered, JobFailed, NodeLost
from windlass.maintenance.heartbeat import Heartbeat
from windlass.runtime.guard import ErrorHandling
from windlass.runtime.service import Service
from windlass.settings import NodeSettings
from windlass.spi import Clock
from windlass.stores import cluster, queues, reading
from windlass.stores.database import Database
from windlass.stores.dialect import GivenUp

logger = saying.logger("windlass.recovery")

UNKNOWN_EVERY = 5
"""Passes between two looks at targets nobody knows."""
PATIENCE = 7.0
"""Seconds this node must itself have held its lease without a gap before it gives up others.

When the database was away nobody could beat, and everybody gets the time to connect and beat again.
"""
MICROSECONDS = 1_000_000


class Recovery(Service):
    """Looks for lost nodes every few seconds, and now and then for jobs whose target no node has known for too long."""

    def __init__(
        self,
        database: Database,
        settings: NodeSettings,
        bus: EventBus,
        clock: Clock,
        found_work: Callable[[], None],
        heartbeat: Heartbeat,
        given_up: GivenUp,
        errors: ErrorHandling,
    ) -> None:
        super().__init__("recovery", errors)
        self._database = database
        self._settings = settings
        self._bus = bus
        self._clock = clock
        self._found_work = found_work
        self._heartbeat = heartbeat
        self._given_up = given_up
        lease = lease_for(settings.heartbeat_interval, settings.missed_heartbeats)
        self._patience = min(lease, PATIENCE)
        self._passes = 0

    async def tick(self) -> float | None:
        """One pass."""
        if self._heartbeat.steady_for() >= self._patience:
            await self._database.arun(cluster.mark_lost, self._heartbeat.node.id)
        while (await self._recover()).more:
            pass
        if self._passes % UNKNOWN_EVERY == 0:
            await self._fail_unknown()
        self._passes += 1
        spread = random.uniform(0.8, 1.2)  # noqa: S311 - spreads nodes, guards nothing
        return self._settings.recovery_interval * spread

    async def _recover(self) -> cluster.Recovery:
        found = await self._database.arun(cluster.recover, self._settings.crash_budget, self._given_up)
        for node, count in found.recovered.items():
            logger.warning("node %s was lost; %d of its jobs are waiting again", node, count)
        for job, node in found.given_up:
            logger.error("job %s failed for good: its worker was lost too often, the last time on node %s", job, node)
        if found.recovered or found.given_up or found.freed:  # also those that are given up may have callbacks
            self._found_work()
        self._publish([self._lost(node, count) for node, count in found.recovered.items()])
        await self._tell_failed(job for job, _ in found.given_up)
        return found

    def _lost(self, node: str, recovered: int) -> NodeLost:
        return NodeLost(at=self._clock.now(), node=node, recovered=recovered)

    async def _fail_unknown(self) -> None:
        waited = self._settings.unknown_target_after
        waited_us = int(waited * MICROSECONDS)
        failed = await self._database.arun(queues.fail_unknown, waited_us, _error_for(waited), self._given_up)
        if failed:
            self._found_work()
        for job in failed:
            logger.error(
                "job %s failed for good: no node has known its target %s for %g s", job.job_id, job.target, waited
            )
        await self._tell_failed(job.job_id for job in failed)

    async def _tell_failed(self, ids: Iterable[str]) -> None:
        """What died without an attempt of its own is told of like any other dead letter."""
        if not (self._bus.wanted(JobFailed) or self._bus.wanted(JobDeadLettered)):
            return
        for job_id in ids:
            job = await self._database.aread(reading.failed, job_id)
            if job is not None:
                self._bus.publish(_failure_events(job_id, job))

    def _publish(self, events: Sequence[Event]) -> None:
        if events and self._bus.wanted(type(events[0])):
            self._bus.publish(events)


def _failure_events(job_id: str, job: reading.FailedJob) -> list[Event]:
    told: dict[str, Any] = {
        "job_id": UUID(job_id),
        "target": job.target,
        "queue": job.queue,
        "correlation_id": job.correlation_id,
        "at": from_micros(job.finished_at),
        "error": job.error,
        "error_class": job.error_class,
        "attempt": job.attempts + 1,
    }
    fingerprint = error_fingerprint(job.target, job.error_class, job.error)
    return [
        JobFailed(**told, will_retry=False),
        JobDeadLettered(**told, reason=job.reason, fingerprint=fingerprint),
    ]


def _error_for(waited: float) -> Callable[[str], str]:
    return lambda target: (
        f"TargetNotFoundError: no node has known {target} for {waited:g} s; deploy it, or cancel its jobs"
    )
