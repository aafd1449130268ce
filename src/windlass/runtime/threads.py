"""Threads for sync bodies: a queue in, coalesced wakeups out, and an interrupt for bodies that run over their time.

`run_in_executor` costs 40 µs a call; here a finished body is put on a list, and the loop is woken once for all that
finished meanwhile. A thread that is done with a body may enter the next in line at once, in its place: as many bodies
run as before, and the loop hears of both in due course.
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

IDLE_SECONDS = 60.0


class Interrupted(BaseException):
    """Thrown into a thread whose attempt is over. A BaseException, so that `except Exception` does not hold it up."""


class ThreadGoesOn(asyncio.CancelledError):
    """Whoever awaited a body was cancelled, and the body goes on for a while on its thread, which was interrupted."""

    def __init__(self, call: _Call) -> None:
        super().__init__()
        self._call = call

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call back once the body has ended, on its thread; here, if it has already."""
        self._call.when_ended(callback)


class _Call:
    """One body on its way through a thread."""

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
        "passes_on",
        "turn",
        "value",
    )

    def __init__(self, function: Callable[[], Any], future: asyncio.Future[Any], turn: Turn | None) -> None:
        self.function = function
        self.future = future
        self.turn = turn
        self.passes_on = True  # to the next in line, when it ends; False once the loop has given its place to another
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
        """Run the body on this thread; False if the thread was interrupted and must not be used again."""
        self._thread_id = threading.get_ident()
        with self._lock:
            if self.future.cancelled():
                return True
            self._armed = True
        if self.turn is not None:
            self.turn.enter()
        try:
            self.value = self.context.run(self.function)
        except BaseException as error:  # noqa: BLE001 - carried to the loop, which judges it
            self.error = error
        with self._lock:
            interrupted = not self._armed
            self._armed = False
        return not interrupted

    def interrupt(self) -> bool:
        """Throw `Interrupted` into the thread, if the body is still on it. C code (sleep, sockets) is not reached.

        False: the body is not on a thread.
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
        """Of a body that was interrupted: call back once it has ended."""
        with self._lock:
            if not self._over:
                self._when_ended = callback
                return
        callback()

    def end(self) -> None:
        """The thread has left a body that was interrupted."""
        with self._lock:
            self._over = True
            callback, self._when_ended = self._when_ended, None
        if callback is not None:
            callback()


class Turn:
    """The place in line of one body. Made and used on the loop; entered on a thread."""

    __slots__ = ("_bodies", "_call", "_is_next", "began", "until")

    def __init__(self, bodies: ThreadBodies, until: float = float("inf")) -> None:
        self._bodies = bodies
        self.until = until
        """After this, on the monotonic clock, only the loop has it entered: it may have been canceled meanwhile."""
        self._call: _Call | None = None
        self._is_next = False
        self.began: float | None = None
        """When a thread entered it, on the monotonic clock."""

    async def run(self, function: Callable[[], Any]) -> Any:
        """The body is ready: wait for its turn and its end."""
        return await self._bodies.run(function, self)

    def enter(self) -> None:
        """A thread is about to."""
        if self.began is None:
            self.began = monotonic()

    def begin(self) -> None:
        """Have it entered now, by a thread of its own, if no other has yet."""
        self._is_next = True
        if self._call is not None and self._bodies.leave_line(self._call):
            self._bodies.put(self._call)

    def withdraw(self) -> bool:
        """Have it never entered; False if it has been. Whoever waits for it is to be cancelled then."""
        return self._call is None or self._bodies.leave_line(self._call)

    def waits(self, call: _Call) -> bool:
        """The body is ready; whether it stands in line now, or is to be entered at once."""
        self._call = call
        return not self._is_next


class ThreadBodies:
    """Runs sync functions for one event loop. Threads are made when needed, up to as many as there are calls."""

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

        With a `turn` it begins when a thread has ended another body, or when the turn says so.
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
            if not self.leave_line(call) and self._interrupt(call):
                raise ThreadGoesOn(call) from None
            raise

    def _interrupt(self, call: _Call) -> bool:
        with self._lock:
            call.passes_on = False
        return call.interrupt()

    def leave_line(self, call: _Call) -> bool:
        """Take a call out of the line; False if it is not there, because a thread has taken it."""
        with self._lock:
            if call not in self._line:
                return False
            self._line.remove(call)
            return True

    def put(self, call: _Call) -> None:
        """Have a thread take the call now."""
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
            pass  # it arrived just after the body had ended: this thread retires all the same
        finally:
            with self._lock:
                self._threads -= 1
            if call is not None and call.interrupted:
                call.end()

    def _after(self, call: _Call, *, healthy: bool) -> _Call | None:
        """The next in line takes the place of one that has ended, unless the loop has given that away."""
        with self._lock:
            if not healthy:
                return None
            turn = self._line[0].turn if self._line and call.passes_on else None
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
            self._closed = True  # the loop is gone, and with it whoever waited

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
        """Let idle threads end; what still runs is left to end by itself."""
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
