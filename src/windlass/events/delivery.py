"""How events get to their listeners: one at a time and in order, without ever blocking the loop that told of them.

A loop has one consumer task, which lives while there is something to deliver. It awaits async listeners itself, and
hands runs of sync ones to the one listener thread. Threads without a loop hand everything to that thread.
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

from windlass.events.subscriber import Call, Caller, logger

_MOST_PER_HOP = 256


class _Work(NamedTuple):
    calls: Sequence[Call]
    done: Callable[[], object] | None


class ListenerThread:
    """The daemon thread on which sync listeners run. It is started when it is first needed."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._lock = threading.Lock()
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def idle(self) -> bool:
        """Whether there is no thread, and so nothing to wait for."""
        return self._thread is None or not self._thread.is_alive()

    def submit(self, calls: Sequence[Call], done: Callable[[], object] | None = None) -> None:
        """Have `calls` made after all those submitted before, and `done` called then, on that thread."""
        with self._lock:
            if self.idle:
                self._queue = SimpleQueue()  # after a fork, the lock inside the old one may be held for ever
                self._thread = threading.Thread(
                    target=self._live, args=(self._queue,), name="windlass listeners", daemon=True
                )
                self._thread.start()
            self._queue.put(_Work(calls, done))

    def submit_from(self, loop: asyncio.AbstractEventLoop, calls: Sequence[Call]) -> asyncio.Future[None]:
        """Do the same, and give a future of `loop` that is done when the calls are."""
        future: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            if not future.done():
                future.set_result(None)

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
                loop.call_soon_threadsafe(finish)

        self.submit(calls, tell)
        return future

    def flush(self, timeout: float) -> bool:
        """Wait until all that was submitted is done; False if that takes longer than `timeout`."""
        if self.idle or self._thread is threading.current_thread():
            return True
        done = threading.Event()
        self.submit((), done.set)
        return done.wait(timeout)

    def close(self) -> None:
        """End the thread once it has done what was submitted; it is not waited for."""
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
    """A loop for async listeners told from threads that have none; made when it is first needed."""

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
    """The events told on one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, caller: Caller, thread: ListenerThread, most: int) -> None:
        self.loop = loop
        self._caller = caller
        self._thread = thread
        self._most = most
        self._waiting: deque[Call] = deque()
        self._consumer: asyncio.Task[None] | None = None
        self._dropped = 0

    def push(self, calls: Sequence[Call]) -> None:
        """Have `calls` made after those pushed before; too many waiting, and they are dropped, with a warning."""
        if len(self._waiting) + len(calls) > self._most:
            if not self._dropped:
                logger.error("listeners are too slow: %d calls wait, further ones are dropped", len(self._waiting))
            self._dropped += len(calls)
            return
        self._waiting.extend(calls)
        if self._consumer is None or self._consumer.done():
            # A context of its own: the first teller may be a job, whose context is not that of the listeners.
            self._consumer = self.loop.create_task(self._consume(), name="windlass events", context=Context())

    async def drain(self, timeout: float) -> bool:
        """Wait until all is delivered; what is not by then is dropped, with a warning, and False is given."""
        consumer = self._consumer
        if consumer is None or consumer.done() or consumer is asyncio.current_task():
            return True
        await asyncio.wait({consumer}, timeout=timeout)
        if consumer.done():
            return True
        left = len(self._waiting)
        self._waiting.clear()
        consumer.cancel()
        logger.error("listeners did not end within %g s; they are left alone, %d calls are dropped", timeout, left)
        return False

    async def _consume(self) -> None:
        while self._waiting:
            calls = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_PER_HOP))]
            for is_async, group in groupby(calls, key=lambda call: call.listener.is_async):
                if is_async:
                    for call in group:
                        await self._caller.acall(call)
                else:
                    await self._thread.submit_from(self.loop, list(group))
        if self._dropped:
            logger.error("listeners were too slow: %d calls were dropped", self._dropped)
            self._dropped = 0
