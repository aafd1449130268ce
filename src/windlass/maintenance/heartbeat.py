"""The heartbeat: renews the node's lease from a thread of its own, so that a blocked event loop does not look dead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from windlass import loggers
from windlass.domain.clock import monotonic, wall_nanos
from windlass.domain.lease_times import heartbeat_interval, lease_for
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.runtime.thread_service import ThreadService
from windlass.settings import NodeSettings
from windlass.stores.database import Database
from windlass.stores.node_identity import NodeIdentity
from windlass.stores.plans import cluster

logger = loggers.logger("windlass.heartbeat")

MICROSECONDS = 1_000_000
CLOCK_SLACK = 0.1
"""Seconds by which the system's clock may have run ahead since the last beat; by more, and somebody has set it."""
LONGEST_RETRY = 1.0
"""Seconds between two tries to beat: after an outage every node must be heard before anybody may count it as lost."""
LEAST_LATENESS = 1.0
"""Seconds by which a beat may be late before it counts as missed, however short the interval."""


class Load(NamedTuple):
    """What a node says of itself with every beat."""

    running: int
    utilisation: float
    error: str | None = None
    """What its services keep failing with; None when all of them work."""


class Heartbeat(ThreadService):
    """Registers the node, beats, and says when the cluster has given the node up."""

    def __init__(
        self,
        database: Database,
        identity: NodeIdentity,
        settings: NodeSettings,
        load: Callable[[], Load],
        when_lost: Callable[[], object],
        when_asked_to_drain: Callable[[], object],
        errors: ErrorHandling,
    ) -> None:
        super().__init__("heartbeat", replace(errors, max_delay=min(errors.max_delay, LONGEST_RETRY)))
        self._database = database
        self._identity = identity
        self._settings = settings
        self._load = load
        self._when_lost = when_lost
        self._when_asked_to_drain = when_asked_to_drain
        self._latency = 0.0
        self._covered = (float("-inf"), 0)
        self._steady_since = monotonic()
        self._overdue_at = float("inf")
        self._missed = False

    @property
    def node(self) -> cluster.NodeRow:
        """The node as it is known to the cluster at present."""
        return self._identity.row

    def register(self) -> None:
        """Enter the node; before anything is claimed in its name."""
        lease_us = self._lease_us(self._settings.heartbeat_interval)
        self._database.run(cluster.register, self.node, lease_us)
        reached("node.registered")
        self._renewed(lease_us, self._settings.heartbeat_interval)

    def unregister(self) -> None:
        """Leave in good order."""
        self._database.run(cluster.unregister, self.node.id)

    def tick(self) -> float | None:
        """Beat once; the lease covers the interval promised until the next beat."""
        try:
            return self._beat()
        except BaseException:
            self._missed = True
            raise

    def _beat(self) -> float:
        load = self._load()
        nodes = self._database.run(cluster.live_nodes)
        interval = heartbeat_interval(self._settings.heartbeat_interval, load.utilisation, nodes, self._latency)
        started = monotonic()
        lease_us = self._lease_us(interval)
        reached("heartbeat.before_beat")
        alive = self._database.run(cluster.beat, self.node.id, lease_us, load.running, load.error)
        self._latency = monotonic() - started
        reached("heartbeat.after_beat")
        if alive:
            self._renewed(lease_us, interval)
        else:
            self._start_over()
        if self._database.read(cluster.asked_to_drain, self.node.id):
            self._when_asked_to_drain()
        return interval

    def steady_for(self) -> float:
        """Seconds for which this node has beaten without a gap; 0 while it has no lease, or is late.

        Who could not beat in time (no database, a stalled machine) must not conclude from that that others are lost:
        their leases may be shorter than its own.
        """
        late = self._missed or monotonic() > self._overdue_at
        return 0.0 if late or self._lapsed() else monotonic() - self._steady_since

    def _renewed(self, lease_us: int, interval: float) -> None:
        now = monotonic()
        if self._missed or now > self._overdue_at or self._lapsed():
            self._steady_since = now
        self._missed = False
        self._overdue_at = now + interval + max(interval / 2, LEAST_LATENESS)
        self._covered = (monotonic() + lease_us / MICROSECONDS, wall_nanos() + lease_us * 1_000)

    def _lapsed(self) -> bool:
        """By either clock: the monotonic one stands still while a machine sleeps, the other one may be set.

        Set forward it has shortened the leases of all, by more than is left of some: that is a gap for everybody.
        """
        until, wall_until = self._covered
        wall_left = (wall_until - wall_nanos()) / 1_000_000_000  # asked first: a pause between the two says nothing
        left = until - monotonic()
        return left < 0 or wall_left < 0 or left - wall_left > CLOCK_SLACK

    def _start_over(self) -> None:
        """The cluster has given this node's jobs to others.

        Go on under a new name; late results of the old one are refused.
        """
        logger.error(
            "node %s lost its lease (it was stalled, or cut off from the store); its jobs were given to other nodes, "
            "it goes on under a new id",
            self.node.id,
        )
        self._identity.renew()
        self._when_lost()
        self.register()

    def _lease_us(self, interval: float) -> int:
        return int(lease_for(interval, self._settings.missed_heartbeats) * MICROSECONDS)
