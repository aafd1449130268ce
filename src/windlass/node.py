"""A node: the services of one worker, started in order and drained in order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

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
"""Seconds between two looks whether a node has run all that is due."""


class Node:
    """One running node on the current loop. Built by `Worker`, which says where the loop is."""

    loop_watch: LoopWatch | None = None

    def __init__(self, parts: Parts, concurrency: int, queues: Sequence[str] | None) -> None:
        self._parts = parts
        self.asked_to_drain = asyncio.Event()
        """Set once the node is to leave."""
        self._service_errors = ServiceErrors()
        errors = ErrorHandling(describe=parts.sanitizer.sanitize, service_errors=self._service_errors)
        features = features_of(parts)
        follow_ups = follow_ups_of(features)
        self.identity = NodeIdentity(queues)
        served = None if queues is None else frozenset(queues)
        self.engine = NodeEngine(parts, self.identity, follow_ups, concurrency, served, errors)
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
        )
        self.slots, self.poller = self.engine.slots, self.engine.poller
        self.completer = self.engine.completer

    @property
    def id(self) -> str:
        """The node's present id."""
        return self.identity.id

    async def start(self) -> None:
        """Do everything that a node does."""
        await self.open()
        self.membership.start()
        self.poller.start()
        if threshold := self._parts.settings.node.loop_block_warning:
            self.loop_watch = watch_loop(threshold, self.slots)
            self.loop_watch.start()

    async def open(self) -> None:
        """Do all but claim. Register first, so that nothing is ever claimed in the name of a node nobody knows."""
        logcontext.install()
        try:
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
            await self.drain(0)  # half a node must not look alive
            raise

    async def emptied(self) -> None:
        """Wait until nothing runs here and nothing is due that this node could claim."""
        while True:
            while self.slots.attempts() or self.completer.unwritten:  # noqa: ASYNC110 - told of neither
                await asyncio.sleep(EMPTY_CHECK)
            await self.poller.stop()  # so that no claim is under way
            if not self.slots.attempts() and not await self.poller.anything_due():
                return
            self.poller.start()
            await asyncio.sleep(EMPTY_CHECK)

    async def drain(self, timeout: float | None = None) -> bool:
        """Stop claiming, release, finish, leave. True when all bodies finished in time and all is written."""
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
            left = await self.departure.leave()
            logcontext.uninstall()
        return clean and left

    def abandon(self) -> None:
        """Its loop has ended: stop beating, so that its lease runs out and others take over what it ran."""
        if self.loop_watch is not None:
            self.loop_watch.stop()
        self.departure.abandon()
        logcontext.uninstall()
