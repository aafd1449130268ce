"""`Service` on a thread, for what must continue while the loop is blocked: the heartbeat."""

import asyncio
import threading
from abc import ABC, abstractmethod

from windlass.runtime.error_handling import DEFAULT_ERRORS, ErrorGuard, ErrorHandling, ServiceSignals
from windlass.runtime.forks import after_fork


class _ThreadRun:
    """One run of a `ThreadService`, from start to stop."""

    def __init__(self) -> None:
        self.stop_asked = threading.Event()
        self.bell = threading.Event()
        self.thread: threading.Thread | None = None

    def stop(self) -> None:
        self.stop_asked.set()
        self.bell.set()


class ThreadService(ABC):
    """A background service on a daemon thread, with the contract of `Service` but without `async`."""

    def __init__(self, name: str, errors: ErrorHandling = DEFAULT_ERRORS) -> None:
        self.name = name
        self.signals = ServiceSignals()
        self._errors = errors
        self._reset()
        after_fork(self._reset)

    def _reset(self) -> None:
        """Reset to "not started". Also after a fork, where the thread is missing and the lock may be held."""
        self._lock = threading.Lock()
        self._run: _ThreadRun | None = None

    @abstractmethod
    def tick(self) -> float | None:
        """Do one round of work; return the seconds to sleep afterwards, or None to sleep until woken."""

    @property
    def alive(self) -> bool:
        """Whether the service has been started and not been stopped."""
        run = self._run
        # After a fork the thread no longer exists.
        return run is not None and not run.stop_asked.is_set() and run.thread is not None and run.thread.is_alive()

    def start(self) -> None:
        """Start ticking on a thread; does nothing if it runs already."""
        with self._lock:
            if self.alive:
                return
            earlier = self._run
            run = _ThreadRun()
            run.thread = threading.Thread(
                target=self._live, args=(run, earlier), name=f"windlass {self.name}", daemon=True
            )
            self._run = run  # before the first tick: a wakeup may already come
            try:
                run.thread.start()
            except RuntimeError:  # the process cannot start another thread
                self._run = earlier
                raise

    def wake(self) -> None:
        """End the current sleep, from any thread; a tick in progress is followed by another."""
        run = self._run
        if run is not None:
            run.bell.set()

    def stop(self, grace: float = 5.0) -> None:
        """Stop the service and wait for it: a sleep ends at once, a tick is waited for up to `grace` seconds.

        May be called any number of times, concurrently, and from within `tick` (it then returns at once).
        """
        with self._lock:
            run = self._run
        if run is None or run.thread is None:
            return
        run.stop()
        if run.thread is threading.current_thread():
            return
        run.thread.join(grace)
        if run.thread.is_alive():
            self._errors.logger.error("%s did not stop within %g s: its tick is still running", self.name, grace)

    async def astop(self, grace: float = 5.0) -> None:
        """Do the same as `stop` without blocking the loop."""
        await asyncio.to_thread(self.stop, grace)

    def _live(self, run: _ThreadRun, earlier: _ThreadRun | None) -> None:
        if earlier is not None and earlier.thread is not None:
            earlier.thread.join()
        guard = ErrorGuard(self.name, self._errors)
        try:
            while not run.stop_asked.is_set():
                self._round(run, guard)
        finally:
            run.stop_asked.set()
            self.signals.stopped.send(None)

    def _round(self, run: _ThreadRun, guard: ErrorGuard) -> None:
        run.bell.clear()
        if run.stop_asked.is_set():  # the bell just cleared may have been rung by `stop`
            return
        try:
            pause = self.tick()
        except Exception as error:  # noqa: BLE001 - a service outlives every error of its ticks
            pause = guard.failed(error)
            self.signals.failed.send(error)
            run.stop_asked.wait(pause)  # wakeups must not make a failing service try without a pause
        else:
            guard.succeeded()
            self.signals.ticked.send(pause)
            run.bell.wait(None if pause is None else min(pause, threading.TIMEOUT_MAX))
