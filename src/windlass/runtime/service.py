"""The base class of background services: start, tick, sleep or be woken, handle errors, stop.

A service implements `tick`, which returns how long to sleep afterwards; everything else is here, and tested once. The
last call wins: `start` right after `stop` runs again, but only once the earlier run has ended, so two ticks of one
service never overlap.
"""

import asyncio
import threading
from abc import ABC, abstractmethod

from windlass.runtime.error_handling import DEFAULT_ERRORS, ErrorGuard, ErrorHandling, ServiceSignals

_CANCEL_GRACE = 1.0


class _LoopRun:
    """One run of a `Service`, from start to stop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = threading.get_ident()
        self.stopping = False
        self.wake_pending = False  # a wakeup is scheduled, or will be seen by the next tick
        self.bell = asyncio.Event()
        self._slept = False
        self.task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        if self.wake_pending:
            return
        self.wake_pending = True
        if threading.get_ident() == self.thread:
            self.bell.set()
            return
        try:
            self.loop.call_soon_threadsafe(self.bell.set)
        except RuntimeError:  # the loop is closed: nothing to wake
            return

    def stop(self) -> None:
        self.stopping = True
        self.bell.set()

    async def sleep(self, seconds: float | None, *, wakeable: bool) -> None:
        """Sleep until the time has passed, the bell rings (if `wakeable`), or the run is stopped."""
        if seconds is not None and seconds <= 0:
            await asyncio.sleep(0)  # other tasks must get to run even if this service is always busy
            return
        timer = None if seconds is None else self.loop.call_later(seconds, self._on_timer)
        self._slept = False
        try:
            while not (self.stopping or self._slept):
                await self.bell.wait()
                if wakeable:
                    return
                self.bell.clear()
        finally:
            if timer is not None:
                timer.cancel()

    def _on_timer(self) -> None:
        self._slept = True
        self.bell.set()


class Bell:
    """Wakes a service from any thread, for parts that need nothing else of the service."""

    def __init__(self) -> None:
        self._run: _LoopRun | None = None

    def ring(self) -> None:
        """End the current sleep; a tick in progress is followed by another."""
        if self._run is not None:
            self._run.wake()

    def wakes(self, run: _LoopRun) -> None:
        """Wake this run from now on."""
        self._run = run


class Service(ABC):
    """A background service on an event loop. Subclasses implement `tick`.

    ```python
    class Purge(Service):
        async def tick(self) -> float | None:
            await self.store.purge()
            return 60.0
    ```
    """

    def __init__(self, name: str, errors: ErrorHandling = DEFAULT_ERRORS, bell: Bell | None = None) -> None:
        self.name = name
        self.signals = ServiceSignals()
        self._bell = bell or Bell()
        self._errors = errors
        self._run: _LoopRun | None = None
        self._unfinished: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def tick(self) -> float | None:
        """Do one round of work; return the seconds to sleep afterwards, or None to sleep until woken."""

    @property
    def alive(self) -> bool:
        """Whether the service has been started and not been stopped."""
        return self._run is not None and not self._run.stopping and not _ended(self._run)

    def start(self) -> None:
        """Start ticking on the running loop; does nothing if it runs already."""
        if self.alive:
            return
        loop = asyncio.get_running_loop()
        # Runs of a closed loop can neither end nor tick any more.
        earlier = {task for task in self._unfinished if task.get_loop() is loop}
        run = self._run = _LoopRun(loop)
        self._bell.wakes(run)
        run.task = loop.create_task(self._live(run, earlier), name=f"windlass {self.name}")
        self._unfinished.add(run.task)
        run.task.add_done_callback(self._unfinished.discard)

    def wake(self) -> None:
        """End the current sleep, from any thread; a tick in progress is followed by another."""
        self._bell.ring()

    async def stop(self, grace: float = 5.0) -> None:
        """Stop the service and wait for it, on the loop that started it.

        A sleep ends at once; a tick may continue for `grace` seconds and is then cancelled. May be called any number of
        times, concurrently, and from within `tick` (it then returns at once).
        """
        run = self._run
        if run is None or run.task is None:
            return
        run.stop()
        if run.task is asyncio.current_task() or run.task.done():
            return
        await asyncio.wait({run.task}, timeout=grace)
        if not run.task.done():
            run.task.cancel()
            await asyncio.wait({run.task}, timeout=_CANCEL_GRACE)
        if not run.task.done():
            self._errors.logger.error("%s does not stop: its tick ignores being cancelled", self.name)

    async def _live(self, run: _LoopRun, earlier: set[asyncio.Task[None]]) -> None:
        try:
            if earlier:
                await asyncio.wait(earlier)
            guard = ErrorGuard(self.name, self._errors)
            while not run.stopping:
                await self._round(run, guard)
        finally:
            run.stopping = True
            self.signals.stopped.send(None)

    async def _round(self, run: _LoopRun, guard: ErrorGuard) -> None:
        run.bell.clear()
        run.wake_pending = False
        try:
            pause = await self.tick()
        except asyncio.CancelledError as error:
            if run.stopping or _being_cancelled():
                raise
            await self._handle_error(run, guard, error)  # something inside the tick was cancelled, not the service
        except Exception as error:  # noqa: BLE001 - a service outlives every error of its ticks
            await self._handle_error(run, guard, error)
        else:
            guard.succeeded()
            self.signals.ticked.send(pause)
            await run.sleep(pause, wakeable=True)

    async def _handle_error(self, run: _LoopRun, guard: ErrorGuard, error: BaseException) -> None:
        pause = guard.failed(error)
        self.signals.failed.send(error)
        await run.sleep(pause, wakeable=False)  # wakeups must not make a failing service try without a pause


def _ended(run: _LoopRun) -> bool:
    return run.loop.is_closed() or (run.task is not None and run.task.done())


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
