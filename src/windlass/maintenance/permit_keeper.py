"""What a node keeps that has left while bodies on its threads go on: their permits, under its lease."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from windlass import loggers
from windlass.domain.lease_times import lease_for
from windlass.runtime import exits
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.thread_service import ThreadService
from windlass.settings import NodeSettings
from windlass.stores.database import Database
from windlass.stores.plans import cluster, permits

logger = loggers.logger("windlass.worker")

MICROSECONDS = 1_000_000
LONGEST_RETRY = 1.0
"""Seconds between two tries to beat while the store is away."""


class PermitKeeper(ThreadService):
    """Renews the lease of a node that has left until the bodies have ended that hold permits, then signs it off.

    The permits are counted as long as the node lives; a process that dies with its threads loses the lease in time.
    """

    def __init__(
        self,
        database: Database,
        node_id: str,
        settings: NodeSettings,
        when_freed: Callable[[Sequence[permits.Body]], None],
        errors: ErrorHandling,
        *,
        closes: bool,
    ) -> None:
        super().__init__("permit keeper", replace(errors, max_delay=min(errors.max_delay, LONGEST_RETRY)))
        self._database = database
        self._node_id = node_id
        self._interval = settings.heartbeat_interval
        self._lease_us = int(lease_for(self._interval, settings.missed_heartbeats) * MICROSECONDS)
        self._when_freed = when_freed
        self._guard = threading.Lock()
        self._bodies: set[permits.Body] = set()
        self._ended: set[permits.Body] = set()
        self._over = self._serves_nothing = False
        self._closes = closes

    def keep(self, bodies: Collection[permits.Body]) -> None:
        """Begin with these."""
        self._bodies.update(bodies)
        logger.warning(
            "node %s lives on for %d bodies that hold permits and could not be stopped", self._node_id, len(bodies)
        )
        exits.before_end(self.sign_off)
        self.start()

    def ended(self, body: permits.Body) -> None:
        """A body has ended. From any thread."""
        with self._guard:
            if body in self._bodies:
                self._ended.add(body)
        self.wake()

    def tick(self) -> float | None:
        """Release the permits of what has ended; beat for the rest, or leave when there is none."""
        if not self._serves_nothing:
            self._database.run(cluster.serve_nothing, self._node_id)
            self._serves_nothing = True
        with self._guard:
            ended = list(self._ended)
        if ended:
            freed = self._database.run(permits.leave, ended)
            with self._guard:
                self._bodies.difference_update(ended)
                self._ended.difference_update(ended)
            if freed:
                self._when_freed(ended)
        if not self._bodies:
            self.sign_off()
        elif not self._database.run(cluster.beat, self._node_id, self._lease_us, len(self._bodies)):
            logger.error(
                "node %s lost its lease while bodies of its jobs went on; their permits are free", self._node_id
            )
            self._finish()
        return self._interval

    def sign_off(self) -> None:
        """Remove the node: its bodies have ended, or end with the process now."""
        if not self._over:
            with suppress(Exception):  # at the end of a process; the lease runs out by itself
                self._database.run(cluster.unregister, self._node_id)
            self._finish()

    def close_with(self, database: Database) -> None:
        """A database is being closed. One of the keeper's own goes on; one that is shared is in memory, and is gone."""
        if database is self._database:
            self._finish()

    def _finish(self) -> None:
        self._over = True
        exits.forget_act(self.sign_off)
        self.stop()
        if self._closes:
            self._database.close()
