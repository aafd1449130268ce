"""Threads for sync bodies: a queue in, coalesced wakeups out, and interrupts for bodies that exceed their time.

`run_in_executor` costs 40 µs a call; here a finished body is put on a list, and the loop is woken once for all bodies
that have finished since. A thread that has finished a body may start the next one in line at once, in the same slot:
the number of running bodies does not change, and the loop learns of both a little later.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from windlass.domain.clock import monotonic


class Interrupted(BaseException):
    """Thrown into a thread whose attempt is over. A BaseException, so that `except Exception` does not catch it."""


class BodyStillRuns(asyncio.CancelledError):
    """The awaiting task was cancelled, but the body still runs on its thread, which was interrupted."""

    def __init__(self, call: _Call) -> None:
        super().__init__()
        self._call = call

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the body has ended, on its thread; at once, if it has ended already."""
        self._call.when_ended(callback)


class _Call:
    """One call of a body on a thread."""

    __slots__ = (
        "_armed",
        "_lock",
        "_over",
        "_thread_id",
        "_when_ended",
        "context",
        "error",
        "function",
        "future",
        "interrupted",
        "starts_next",
        "turn",
        "value",
    )

    def __init__(self, function: Callable[[], Any], future: asyncio.Future[Any], turn: Turn | None) -> None:
        self.function = function
        self.future = future
        self.turn = turn
        self.starts_next = True  # start the next in line at the end; False once the loop has given the slot to another
        self.context = contextvars.copy_context()
        self.value: Any = None
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._armed = False
        self._thread_id = 0
        self.interrupted = False
        self._over = False
        self._when_ended: Callable[[], None] | None = None

    def run(self) -> bool:
        """Run the body on this thread; return False if the thread was interrupted and must not be reused."""
        self._thread_id = threading.get_ident()
        with self._lock:
            if self.future.cancelled():
                return True
            self._armed = True
        if self.turn is not None:
            self.turn.enter()
        try:
            self.value = self.context.run(self.function)
        except BaseException as error:  # noqa: BLE001 - carried to the loop, which handles it
            self.error = error
        with self._lock:
            interrupted = not self._armed
            self._armed = False
        return not interrupted

    def interrupt(self) -> bool:
        """Throw `Interrupted` into the thread; return False if the body is not on a thread.

        C code (sleep, sockets) is not interrupted.
        """
        with self._lock:
            if not self._armed:
                return False
            self._armed = False
            self.interrupted = True
            thread_id = ctypes.c_ulong(self._thread_id)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread_id, ctypes.py_object(Interrupted))
            return True

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the body, which was interrupted, has ended."""
        with self._lock:
            if not self._over:
                self._when_ended = callback
                return
        callback()

    def end(self) -> None:
        """Record that an interrupted body has ended on its thread, and call the callback."""
        with self._lock:
            self._over = True
            callback, self._when_ended = self._when_ended, None
        if callback is not None:
            callback()


class Turn:
    """A body's position in the line. Created and used on the loop; entered on a thread."""

    __slots__ = ("_bodies", "_call", "_is_next", "began", "until")

    def __init__(self, bodies: ThreadBodies, until: float = float("inf")) -> None:
        self._bodies = bodies
        self.until = until
        """After this time of the monotonic clock only the loop starts the body: it may have been canceled."""
        self._call: _Call | None = None
        self._is_next = False
        self.began: float | None = None
        """When a thread started the body, on the monotonic clock."""

    async def run(self, function: Callable[[], Any]) -> Any:
        """Wait for the turn of a body that is ready, run it and return its result."""
        return await self._bodies.run(function, self)

    def enter(self) -> None:
        """Record the start. Called by the thread that is about to run the body."""
        if self.began is None:
            self.began = monotonic()

    def begin(self) -> None:
        """Start the body now, on another thread, unless a thread has started it already."""
        self._is_next = True
        if self._call is not None and self._bodies.remove_from_line(self._call):
            self._bodies.put(self._call)

    def withdraw(self) -> bool:
        """Take the body out of the line; return False if it has started. The caller then cancels the waiting task."""
        return self._call is None or self._bodies.remove_from_line(self._call)

    def waits(self, call: _Call) -> bool:
        """Attach the body's call; return True if it goes into the line, False if it starts at once."""
        self._call = call
        return not self._is_next


class ThreadBodies:
    """Runs sync functions for one event loop, with at most one thread per call, started when needed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._line: deque[_Call] = deque()
        self._finished: deque[_Call] = deque()
        self._woken = False
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0
        self._closed = False

    async def run(self, function: Callable[[], Any], turn: Turn | None = None) -> Any:
        """Run `function` on a thread, in a copy of the current context. Cancelling this interrupts the thread.

        With a `turn` it starts when a thread has finished another body, or when `Turn.begin` is called.
        """
        call = _Call(function, self._loop.create_future(), turn)
        if turn is not None and turn.waits(call):
            with self._lock:
                self._line.append(call)
        else:
            self.put(call)
        try:
            return await call.future
        except asyncio.CancelledError:
            if not self.remove_from_line(call) and self._interrupt(call):
                raise BodyStillRuns(call) from None
            raise

    def _interrupt(self, call: _Call) -> bool:
        with self._lock:
            call.starts_next = False
        return call.interrupt()

    def remove_from_line(self, call: _Call) -> bool:
        """Remove a call from the line; return False if a thread has taken it already."""
        with self._lock:
            if call not in self._line:
                return False
            self._line.remove(call)
            return True

    def put(self, call: _Call) -> None:
        """Have a thread run the call now."""
        with self._lock:
            starts = self._idle <= 0
            if starts:
                self._threads += 1
            else:
                self._idle -= 1
        self._calls.put(call)
        if starts:
            threading.Thread(target=self._work, name="windlass-job", daemon=True).start()

    def _work(self) -> None:
        call: _Call | None = None
        try:
            call = self._calls.get()
            while call is not None:
                healthy = call.run()
                following = self._after(call, healthy=healthy)
                self._finished.append(call)
                self._wake()
                if not healthy:
                    return
                call = following or self._calls.get()
        except Interrupted:
            pass  # it arrived just after the body had ended; this thread ends anyway
        finally:
            with self._lock:
                self._threads -= 1
            if call is not None and call.interrupted:
                call.end()

    def _after(self, call: _Call, *, healthy: bool) -> _Call | None:
        """Return the next call in line to run in the finished one's slot, unless the loop has reused that slot."""
        with self._lock:
            if not healthy:
                return None
            turn = self._line[0].turn if self._line and call.starts_next else None
            if turn is None or turn.until < monotonic():
                self._idle += 1
                return None
            turn.enter()
            return self._line.popleft()

    def _wake(self) -> None:
        with self._lock:
            if self._woken or self._closed:
                return
            self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            self._closed = True  # the loop is closed, and with it the waiting tasks

    def _deliver(self) -> None:
        with self._lock:
            self._woken = False
        while self._finished:
            call = self._finished.popleft()
            if call.future.done():
                continue
            if call.error is None:
                call.future.set_result(call.value)
            else:
                call.future.set_exception(_carried(call.error))

    def close(self) -> None:
        """Let idle threads end. Running bodies are not waited for."""
        with self._lock:
            threads = self._threads
            self._closed = True
        for _ in range(threads):
            self._calls.put(None)


class BodyExit(Exception):  # noqa: N818 - carries what must not pass through a future
    """Carries a StopIteration, SystemExit, KeyboardInterrupt or the like out of a thread.

    Futures refuse or leak those.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


def _carried(error: BaseException) -> BaseException:
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return BodyExit(error)
