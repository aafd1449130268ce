"""A node: the services of one worker, started and drained in order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from windlass.domain.cluster import NOTHING_DECLARED
from windlass.engine.loop_owner import watch_loop
from windlass.engine.wakeup import WakeupBridge
from windlass.features import features_of, follow_ups_of
from windlass.node_engine import NodeEngine
from windlass.node_exit import TIMEOUT, Departure
from windlass.node_membership import NodeMembership
from windlass.parts import Parts
from windlass.runtime import logcontext
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.loop_watch import LoopWatch
from windlass.runtime.service_errors import ServiceErrors
from windlass.stores.node_identity import NodeIdentity

EMPTY_CHECK = 0.02
"""Seconds between two checks whether a node has run all due jobs."""


class Node:
    """One running node on the current loop. Built by `Worker`, which provides the loop."""

    loop_watch: LoopWatch | None = None

    def __init__(self, parts: Parts, concurrency: int, queues: Sequence[str] | None) -> None:
        self._parts = parts
        self.asked_to_drain = asyncio.Event()
        """Set once the node was asked to drain."""
        self._service_errors = ServiceErrors()
        errors = ErrorHandling(describe=parts.sanitizer.sanitize, service_errors=self._service_errors)
        features = features_of(parts)
        follow_ups = follow_ups_of(features)
        self._starts = [feature.start for feature in features if feature.start is not None]
        declared = next((start.declared() for start in self._starts), NOTHING_DECLARED)
        self.identity = NodeIdentity(queues, declared)
        served = None if queues is None else frozenset(queues)
        self.engine = NodeEngine(parts, self.identity, follow_ups, concurrency, served, errors, features)
        self.membership = NodeMembership(parts, self.identity, self.engine, features, self.asked_to_drain, errors)
        self.departure = Departure(
            parts, self.membership.heartbeat, self.membership.pulse, self.engine, self.asked_to_drain
        )
        self.wakeups = WakeupBridge(
            parts.database,
            self.engine.work,
            parts.coordinator,
            (parts.work.sender, parts.done.sender),
            self.engine.cancellations,
            self.departure.store_lost,
            self.engine.schedule_changes,
        )
        self.slots, self.poller = self.engine.slots, self.engine.poller
        self.completer = self.engine.completer

    @property
    def id(self) -> str:
        """The node's current id."""
        return self.identity.id

    async def start(self) -> None:
        """Start all services."""
        await self.open()
        try:
            for start in self._starts:
                await start.after()
        except BaseException:
            await self.drain(0)
            raise
        self.membership.start()
        self.poller.start()
        if threshold := self._parts.settings.node.loop_block_warning:
            self.loop_watch = watch_loop(threshold, self.slots)
            self.loop_watch.start()

    async def open(self) -> None:
        """Start all but claiming. The node registers first, so that nothing is claimed by an unknown node."""
        logcontext.install()
        try:
            for start in self._starts:
                await start.before()
            await asyncio.to_thread(self.membership.heartbeat.register)
        except BaseException:
            await self.engine.invoker.close()
            self.abandon()
            raise
        try:
            self.membership.heartbeat.start()
            self.engine.open()
            self.membership.recovery.start()
            await asyncio.to_thread(self.wakeups.open)
        except BaseException:
            await self.drain(0)  # a partly started node must not look alive
            raise

    async def emptied(self) -> None:
        """Wait until nothing runs here and nothing is due that this node could claim."""
        while True:
            while self.slots.attempts() or self.completer.unwritten:  # noqa: ASYNC110 - there is no event for either
                await asyncio.sleep(EMPTY_CHECK)
            await self.poller.stop()  # so that no claim is under way
            if not self.slots.attempts() and not await self.poller.anything_due():
                return
            self.poller.start()
            await asyncio.sleep(EMPTY_CHECK)

    async def drain(self, timeout: float | None = None) -> bool:
        """Stop claiming, release, finish, unregister; return True if all bodies finished in time and all is written."""
        limit = self._parts.settings.node.drain_timeout if timeout is None else timeout
        try:
            self.wakeups.close()
            await asyncio.gather(self.poller.stop(), self.membership.stop())
            clean = await self.slots.drain(limit)
            clean = await self.departure.flushed(self._service_errors) and clean
            await self.engine.stop(TIMEOUT)
            await self._parts.bus.drain(5.0)
        finally:
            if self.loop_watch is not None:
                await self.loop_watch.astop()
            unregistered = await self.departure.unregister()
            logcontext.uninstall()
        return clean and unregistered

    def abandon(self) -> None:
        """Stop beating after the loop has ended, so that the lease expires and others recover its jobs."""
        if self.loop_watch is not None:
            self.loop_watch.stop()
        self.departure.abandon()
        logcontext.uninstall()
