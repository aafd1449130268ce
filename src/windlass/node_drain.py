"""The drain of a running node, requested once or more often, on its loop or from another thread."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext

from windlass import loggers
from windlass.context import current_context
from windlass.errors import ConfigurationError, WouldBlockLoopError
from windlass.node import Node
from windlass.runtime.interrupts import hurried_by_signals

logger = loggers.logger("windlass.worker")

LOOP_CHECK = 0.5
"""Seconds after which a thread that waits for a drain checks whether the node's loop still runs."""
STILL_CHECKS = 2
"""Number of checks in a row after which a loop that does not run has ended: it may be between two runs."""


class NodeDrain:
    """Drains a node once; further callers get the same result. Created on the node's loop."""

    def __init__(self, node: Node, timeout: float | None, on_end: Callable[[], None], *, embedded: bool) -> None:
        self._node = node
        self._timeout = timeout
        self._on_end = on_end
        self._embedded = embedded
        self.loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[bool] | None = None
        self._abandoned = False
        self._watch = self.loop.create_task(self._begin_when_asked()) if embedded else None

    async def _begin_when_asked(self) -> None:
        """Drain when requested by `windlass node drain`: an embedded node drains by itself."""
        await self._node.asked_to_drain.wait()
        if self._node.departure.loss is None:
            logger.info("node %s was asked to drain", self._node.id)
        self._task = self.begin(None)

    def begin(self, limit: float | None) -> asyncio.Task[bool]:
        """Begin on the node's loop, or shorten a drain in progress to `limit` seconds from now."""
        if self._task is None:
            limit = self._timeout if limit is None else limit
            self._task = self.loop.create_task(self._drain(limit), context=self._context.copy())
        elif limit is not None:
            self.loop.call_later(limit, self._node.slots.force)
        return self._task

    async def run(self, limit: float | None) -> bool:
        """Wait for the drain on any loop. On the node's loop, being cancelled stops and releases running jobs."""
        if self.loop is not asyncio.get_running_loop():
            return await asyncio.to_thread(self.wait, limit)
        self._refuse_in_its_job("adrain")
        draining = self.begin(limit)
        try:
            return await asyncio.shield(draining)
        except asyncio.CancelledError:
            self._node.slots.force()
            await asyncio.wait({draining})
            raise

    def wait(self, limit: float | None) -> bool:
        """Wait for the drain on a thread that does not run the node's loop."""
        self._refuse_on_its_loop()
        self._refuse_in_its_job("drain")
        ended: Future[bool] = Future()

        def begin() -> None:
            if self._abandoned:
                return
            self.begin(limit).add_done_callback(lambda drain: ended.set_result(_is_clean(drain)))

        def force() -> None:
            self.loop.call_soon_threadsafe(self._node.slots.force)

        with hurried_by_signals(force):
            try:
                self.loop.call_soon_threadsafe(begin)
            except RuntimeError:  # it is closed
                return self._abandon()
            still = 0
            while still < STILL_CHECKS:
                try:
                    return ended.result(LOOP_CHECK)
                except TimeoutError:
                    still = 0 if self.loop.is_running() else still + 1
            return self._abandon()

    async def _drain(self, limit: float | None) -> bool:
        if self._watch is not None:
            self._watch.cancel()
        node = self._node
        node.asked_to_drain.set()
        with hurried_by_signals(node.slots.force) if self._embedded else nullcontext():
            try:
                return await node.drain(limit)
            finally:
                self._on_end()

    def _abandon(self) -> bool:
        """Give the node up: nothing can be awaited any more on its loop."""
        logger.error(
            "the event loop of node %s ended before the worker was left: its jobs run again elsewhere when its lease "
            "is over; leave `async with app.worker():` before the loop ends",
            self._node.id,
        )
        self._abandoned = True
        self._node.abandon()
        self._on_end()
        return False

    def _refuse_on_its_loop(self) -> None:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if running is self.loop:
            raise WouldBlockLoopError(
                "drain() would block the event loop that the worker runs on; write `await worker.adrain()` instead"
            )

    def _refuse_in_its_job(self, verb: str) -> None:
        context = current_context.get()
        if context is not None and context.node == self._node.id:
            raise ConfigurationError(
                f"{verb}() inside a job of this worker would wait for that very job; have it drained from outside, "
                f"e.g. by `windlass node drain {self._node.id}`"
            )


def _is_clean(drain: asyncio.Task[bool]) -> bool:
    return not drain.cancelled() and drain.exception() is None and drain.result()
