"""The heartbeat.

Renews the node's lease on its own thread, so that a node with a blocked event loop does not look dead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from windlass import loggers
from windlass.domain.clock import MICROSECONDS, monotonic, wall_nanos
from windlass.domain.dispatch_lag import NO_LAGS, LagCounts
from windlass.domain.lease_times import heartbeat_interval, lease_for
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.runtime.thread_service import ThreadService
from windlass.settings import NodeSettings
from windlass.stores.database import Database
from windlass.stores.node_identity import NodeIdentity
from windlass.stores.plans import cluster

logger = loggers.logger("windlass.heartbeat")

CLOCK_SLACK = 0.1
"""Seconds by which the system's clock may have run ahead since the last beat; more means that it was set."""
LONGEST_RETRY = 1.0
"""Longest delay in seconds between two attempts: after an outage each node needs a heartbeat before others judge it."""
LEAST_LATENESS = 1.0
"""Seconds by which a beat may be late before it counts as missed, however short the interval."""


class NodeLoad(NamedTuple):
    """What a node reports with every beat."""

    running: int
    utilisation: float
    error: str | None = None
    """The errors of its services; None when all of them work."""
    lags: LagCounts = NO_LAGS
    """How long after their due times it has claimed jobs lately."""


class Heartbeat(ThreadService):
    """Registers the node, beats, and reports when the cluster has given the node up."""

    def __init__(
        self,
        database: Database,
        identity: NodeIdentity,
        settings: NodeSettings,
        load: Callable[[], NodeLoad],
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
        """The node's current row in the cluster."""
        return self._identity.row

    def register(self) -> None:
        """Register the node, before anything is claimed in its name."""
        lease_us = self._lease_us(self._settings.heartbeat_interval)
        self._database.run(cluster.register, self.node, lease_us)
        reached("node.registered")
        self._renewed(lease_us, self._settings.heartbeat_interval)

    def unregister(self) -> None:
        """Remove the node's row."""
        self._database.run(cluster.unregister, self.node.id)

    def tick(self) -> float | None:
        """Beat once; the lease covers the interval until the next beat."""
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
        alive = self._database.run(cluster.beat, self.node.id, lease_us, load.running, load.error, load.lags)
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
        """Return the seconds for which this node has beaten without a gap; 0 while it has no lease, or is late.

        A node that could not beat in time (no database, a stalled machine) must not conclude that others are lost:
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
        """Return whether the lease has expired by either clock: one stops while a machine sleeps, the other may be set.

        A clock set forward has shortened all leases, some by more than was left of them: that is a gap for every node.
        """
        until, wall_until = self._covered
        wall_left = (wall_until - wall_nanos()) / 1_000_000_000  # read first: a pause between the two does not matter
        left = until - monotonic()
        return left < 0 or wall_left < 0 or left - wall_left > CLOCK_SLACK

    def _start_over(self) -> None:
        """Continue under a new id: the cluster has given this node's jobs to others.

        Late results of the old id are refused.
        """
        logger.error(
            "node %s lost its lease (it was stalled, or cut off from the store); other nodes recover its jobs, "
            "it continues under a new id",
            self.node.id,
        )
        self._identity.renew()
        self._when_lost()
        self.register()

    def _lease_us(self, interval: float) -> int:
        return int(lease_for(interval, self._settings.missed_heartbeats) * MICROSECONDS)
