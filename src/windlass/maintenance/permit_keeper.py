"""Keeps the permits of bodies that still run on threads after their node has drained, under the node's lease."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from windlass import loggers
from windlass.domain.clock import MICROSECONDS
from windlass.domain.lease_times import lease_for
from windlass.runtime import exits
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.thread_service import ThreadService
from windlass.settings import NodeSettings
from windlass.stores.database import Database
from windlass.stores.plans import cluster, permits

logger = loggers.logger("windlass.worker")

LONGEST_RETRY = 1.0
"""Longest delay in seconds between two beats while the store is not reachable."""


class PermitKeeper(ThreadService):
    """Renews the lease of a drained node until the bodies that hold permits have ended, then unregisters it.

    The permits count as long as the node is alive; if the process dies with its threads, the lease expires.
    """

    def __init__(
        self,
        database: Database,
        node_id: str,
        settings: NodeSettings,
        on_released: Callable[[Sequence[permits.Body]], None],
        errors: ErrorHandling,
        *,
        closes: bool,
    ) -> None:
        super().__init__("permit keeper", replace(errors, max_delay=min(errors.max_delay, LONGEST_RETRY)))
        self._database = database
        self._node_id = node_id
        self._interval = settings.heartbeat_interval
        self._lease_us = int(lease_for(self._interval, settings.missed_heartbeats) * MICROSECONDS)
        self._on_released = on_released
        self._guard = threading.Lock()
        self._bodies: set[permits.Body] = set()
        self._ended: set[permits.Body] = set()
        self._over = self._serves_nothing = False
        self._closes = closes

    def keep(self, bodies: Collection[permits.Body]) -> None:
        """Start keeping the permits of these bodies."""
        self._bodies.update(bodies)
        logger.warning(
            "node %s stays registered for %d bodies that hold permits and could not be stopped",
            self._node_id,
            len(bodies),
        )
        exits.before_end(self.unregister)
        self.start()

    def ended(self, body: permits.Body) -> None:
        """Record that a body has ended. From any thread."""
        with self._guard:
            if body in self._bodies:
                self._ended.add(body)
        self.wake()

    def tick(self) -> float | None:
        """Release the permits of ended bodies; beat for the rest, or unregister when there is none."""
        if not self._serves_nothing:
            self._database.run(cluster.serve_nothing, self._node_id)
            self._serves_nothing = True
        with self._guard:
            ended = list(self._ended)
        if ended:
            freed = self._database.run(permits.release, ended)
            with self._guard:
                self._bodies.difference_update(ended)
                self._ended.difference_update(ended)
            if freed:
                self._on_released(ended)
        if not self._bodies:
            self.unregister()
        elif not self._database.run(cluster.beat, self._node_id, self._lease_us, len(self._bodies)):
            logger.error(
                "node %s lost its lease while bodies of its jobs still ran; their permits were released", self._node_id
            )
            self._finish()
        return self._interval

    def unregister(self) -> None:
        """Remove the node: its bodies have ended, or end with the process now."""
        if not self._over:
            with suppress(Exception):  # at the end of a process; the lease will expire
                self._database.run(cluster.unregister, self._node_id)
            self._finish()

    def close_with(self, database: Database) -> None:
        """Stop if this database is closed: a shared one is in memory, and its data is lost."""
        if database is self._database:
            self._finish()

    def _finish(self) -> None:
        self._over = True
        exits.forget_act(self.unregister)
        self.stop()
        if self._closes:
            self._database.close()
