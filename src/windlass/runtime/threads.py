"""Threads for sync bodies: a queue in, coalesced wakeups out, and an interrupt for bodies that run over their time.

`run_in_executor` costs 40 µs a call; here a finished body is put on a list, and the loop is woken once for all that
finished meanwhile.
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

IDLE_SECONDS = 60.0


class Interrupted(BaseException):
    """Thrown into a thread whose attempt is over. A BaseException, so that `except Exception` does not hold it up."""


class _Call:
    """One body on its way through a thread."""

    __slots__ = ("_armed", "_lock", "_thread_id", "context", "error", "function", "future", "value")

    def __init__(self, function: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        self.function = function
        self.future = future
        self.context = contextvars.copy_context()
        self.value: Any = None
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._armed = False
        self._thread_id = 0

    def run(self) -> bool:
        """Run the body on this thread; False if the thread was interrupted and must not be used again."""
        self._thread_id = threading.get_ident()
        with self._lock:
            if self.future.cancelled():
                return True
            self._armed = True
        try:
            self.value = self.context.run(self.function)
        except BaseException as error:  # noqa: BLE001 - carried to the loop, which judges it
            self.error = error
        with self._lock:
            interrupted = not self._armed
            self._armed = False
        return not interrupted

    def interrupt(self) -> None:
        """Throw `Interrupted` into the thread, if the body is still on it. C code (sleep, sockets) is not reached."""
        with self._lock:
            if self._armed:
                self._armed = False
                thread_id = ctypes.c_ulong(self._thread_id)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread_id, ctypes.py_object(Interrupted))


class ThreadBodies:
    """Runs sync functions for one event loop. Threads are made when needed, up to as many as there are calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._finished: deque[_Call] = deque()
        self._woken = False
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0
        self._closed = False

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run `function` on a thread, in a copy of the current context. Cancelling this interrupts the thread."""
        call = _Call(function, self._loop.create_future())
        with self._lock:
            starts = self._idle <= 0
            if starts:
                self._threads += 1
            else:
                self._idle -= 1
        self._calls.put(call)
        if starts:
            threading.Thread(target=self._work, name="windlass-job", daemon=True).start()
        try:
            return await call.future
        except asyncio.CancelledError:
            call.interrupt()
            raise

    def _work(self) -> None:
        healthy = True
        try:
            while healthy and (call := self._calls.get()) is not None:
                healthy = call.run()
                with self._lock:
                    if healthy:
                        self._idle += 1
                self._finished.append(call)
                self._wake()
        except Interrupted:
            pass  # it arrived just after the body had ended: this thread retires all the same
        finally:
            with self._lock:
                self._threads -= 1

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
