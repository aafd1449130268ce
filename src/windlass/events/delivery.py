"""Delivery of events to subscribers: one at a time, in order, without blocking the loop that publishes them.

A loop has one consumer task, which lives while there is something to deliver. It awaits async subscribers itself and
passes runs of sync ones to the one subscriber thread. Threads without a loop pass everything to that thread.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from itertools import groupby
from queue import SimpleQueue
from typing import NamedTuple

from windlass.events.subscriber import Caller, EventDelivery, logger

_MAX_PER_HOP = 256


class _Work(NamedTuple):
    calls: Sequence[EventDelivery]
    done: Callable[[], object] | None


class SubscriberThread:
    """The daemon thread on which sync subscribers run. It is started when it is first needed."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._lock = threading.Lock()
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def idle(self) -> bool:
        """Whether there is no thread, and so nothing to wait for."""
        return self._thread is None or not self._thread.is_alive()

    def submit(self, calls: Sequence[EventDelivery], done: Callable[[], object] | None = None) -> None:
        """Call subscribers on the thread after everything submitted before, and then `done`."""
        with self._lock:
            if self.idle:
                self._queue = SimpleQueue()  # after a fork, the lock inside the old one may be held for ever
                self._thread = threading.Thread(
                    target=self._live, args=(self._queue,), name="windlass subscribers", daemon=True
                )
                self._thread.start()
            self._queue.put(_Work(calls, done))

    def submit_from(self, loop: asyncio.AbstractEventLoop, calls: Sequence[EventDelivery]) -> asyncio.Future[None]:
        """Do the same, and return a future of `loop` that is done when the calls are."""
        future: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            if not future.done():
                future.set_result(None)

        def notify() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: no task is waiting
                loop.call_soon_threadsafe(finish)

        self.submit(calls, notify)
        return future

    def flush(self, timeout: float) -> bool:
        """Wait until everything submitted is done; return False if that takes longer than `timeout`."""
        if self.idle or self._thread is threading.current_thread():
            return True
        done = threading.Event()
        self.submit((), done.set)
        return done.wait(timeout)

    def close(self) -> None:
        """End the thread after the submitted work, without waiting for it."""
        with self._lock:
            if self._thread is not None:
                self._queue.put(None)
                self._thread = None

    def _live(self, queue: "SimpleQueue[_Work | None]") -> None:
        own_loop = _OwnLoop()
        while (work := queue.get()) is not None:
            for call in work.calls:
                self._caller.call(call, own_loop.run)
            if work.done is not None:
                work.done()
        own_loop.close()


class _OwnLoop:
    """A loop for async subscribers of events published on threads without one; created when first needed."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, awaitable: Awaitable[object]) -> None:
        async def wait() -> None:
            await awaitable

        self._runner = self._runner or asyncio.Runner()
        self._runner.run(wait())

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()


class LoopChannel:
    """The events published on one loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, caller: Caller, thread: SubscriberThread, max_waiting: int
    ) -> None:
        self.loop = loop
        self._caller = caller
        self._thread = thread
        self._max_waiting = max_waiting
        self._waiting: deque[EventDelivery] = deque()
        self._consumer: asyncio.Task[None] | None = None
        self._dropped = 0

    def push(self, calls: Sequence[EventDelivery]) -> None:
        """Deliver `calls` after those pushed before.

        If too many are waiting they are dropped, with an error in the log.
        """
        if len(self._waiting) + len(calls) > self._max_waiting:
            if not self._dropped:
                logger.error(
                    "event subscribers are too slow: %d calls are waiting, further ones are dropped", len(self._waiting)
                )
            self._dropped += len(calls)
            return
        self._waiting.extend(calls)
        if self._consumer is None or self._consumer.done():
            # An empty context: the first publisher may be a job, and subscribers must not run in its context.
            self._consumer = self.loop.create_task(self._consume(), name="windlass events", context=Context())

    async def drain(self, timeout: float) -> bool:
        """Wait until everything is delivered.

        Drop the rest after `timeout`, with an error in the log, and return False.
        """
        consumer = self._consumer
        if consumer is None or consumer.done() or consumer is asyncio.current_task():
            return True
        await asyncio.wait({consumer}, timeout=timeout)
        if consumer.done():
            return True
        left = len(self._waiting)
        self._waiting.clear()
        consumer.cancel()
        logger.error(
            "event subscribers did not end within %g s; they are abandoned, %d calls are dropped", timeout, left
        )
        return False

    async def _consume(self) -> None:
        while self._waiting:
            calls = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MAX_PER_HOP))]
            for is_async, group in groupby(calls, key=lambda call: call.subscription.is_async):
                if is_async:
                    for call in group:
                        await self._caller.acall(call)
                else:
                    await self._thread.submit_from(self.loop, list(group))
        if self._dropped:
            logger.error("event subscribers were too slow: %d calls were dropped", self._dropped)
            self._dropped = 0
