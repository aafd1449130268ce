"""Signals for tests: a service reports what it has just done. Without a waiting test this costs nothing."""

import asyncio
import threading
from collections import deque
from concurrent.futures import CancelledError, Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Signal(Generic[T]):
    """A queue of what happened, which stays empty until a test arms it. Every method may be called from any thread.

    ```python
    service.signals.ticked.arm()  # before the thing is caused, or it may be missed
    service.wake()
    await service.signals.ticked.wait()  # instead of sleeping
    ```
    """

    def __init__(self) -> None:
        self._armed = False
        self._lock = threading.Lock()
        self._values: deque[T] = deque()
        self._waiting: deque[Future[T]] = deque()

    def arm(self) -> None:
        """Keep what is sent from now on until a `wait` takes it."""
        self._armed = True

    def disarm(self) -> None:
        """Stop keeping values, and drop those that were sent."""
        with self._lock:
            self._armed = False
            self._values.clear()

    def send(self, value: T) -> None:
        """Give `value` to the longest waiting caller, or keep it; does nothing unless armed."""
        if not self._armed:
            return
        with self._lock:
            while self._waiting:
                waiting = self._waiting.popleft()
                if waiting.set_running_or_notify_cancel():
                    waiting.set_result(value)
                    return
            self._values.append(value)

    async def wait(self, timeout: float = 10.0) -> T:
        """Return the next value sent since the signal was armed; raise TimeoutError if none comes in time."""
        future = self._next()
        wrapped = asyncio.wrap_future(future)
        try:
            await asyncio.wait({wrapped}, timeout=timeout)
        finally:
            wrapped.cancel()
            future.cancel()  # a value that has arrived wins over the timeout
        return self._value(future, timeout)

    def wait_sync(self, timeout: float = 10.0) -> T:
        """Do the same as `wait`, for threads without a loop."""
        future = self._next()
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
        return self._value(future, timeout)

    def _next(self) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            self._armed = True
            if self._values:
                future.set_result(self._values.popleft())
            else:
                self._waiting.append(future)
        return future

    def _value(self, future: Future[T], timeout: float) -> T:
        try:
            return future.result(0)
        except (CancelledError, TimeoutError):
            raise TimeoutError(f"nothing was sent within {timeout:g} s") from None
