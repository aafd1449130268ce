"""The one skeleton of background services: start, tick, sleep or be woken, bear errors, stop.

A service says in `tick` what it does, and how long it then wants to sleep; everything else is here, and tested once.
The last call wins: `start` right after `stop` runs again, but not before the earlier run has ended; two ticks of one
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
        self.told = False  # a wakeup is on its way, or will be seen by the tick to come
        self.bell = asyncio.Event()
        self._slept = False
        self.task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        if self.told:
            return
        self.told = True
        if threading.get_ident() == self.thread:
            self.bell.set()
            return
        try:
            self.loop.call_soon_threadsafe(self.bell.set)
        except RuntimeError:  # the loop is closed: there is nobody to wake
            return

    def stop(self) -> None:
        self.stopping = True
        self.bell.set()

    async def sleep(self, seconds: float | None, *, wakeable: bool) -> None:
        """Sleep until the time is over, the bell rings (if it may), or the run is stopped."""
        if seconds is not None and seconds <= 0:
            await asyncio.sleep(0)  # others must get their turn, also when there is always something to do
            return
        timer = None if seconds is None else self.loop.call_later(seconds, self._time_is_over)
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

    def _time_is_over(self) -> None:
        self._slept = True
        self.bell.set()


class Bell:
    """Wakes a service from any thread: all that those need of it who have news for it."""

    def __init__(self) -> None:
        self._run: _LoopRun | None = None

    def ring(self) -> None:
        """End the current sleep; if a tick is under way, another one follows it."""
        if self._run is not None:
            self._run.wake()

    def wakes(self, run: _LoopRun) -> None:
        """Wake this run from now on."""
        self._run = run


class Service(ABC):
    """A background service on an event loop; a subclass says in `tick` what it does.

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
        """Do one round of work; give the seconds to sleep then, or None to sleep until woken."""

    @property
    def alive(self) -> bool:
        """Whether the service has been started and not been told to stop."""
        return self._run is not None and not self._run.stopping and not _ended(self._run)

    def start(self) -> None:
        """Begin to tick on the running loop; does nothing if it runs already."""
        if self.alive:
            return
        loop = asyncio.get_running_loop()
        # Runs of a loop that is gone cannot end any more, and cannot tick any more either.
        earlier = {task for task in self._unfinished if task.get_loop() is loop}
        run = self._run = _LoopRun(loop)
        self._bell.wakes(run)
        run.task = loop.create_task(self._live(run, earlier), name=f"windlass {self.name}")
        self._unfinished.add(run.task)
        run.task.add_done_callback(self._unfinished.discard)

    def wake(self) -> None:
        """End the current sleep, from any thread; if a tick is under way, another one follows it."""
        self._bell.ring()

    async def stop(self, grace: float = 5.0) -> None:
        """End the service and wait for it, on the loop that started it.

        A sleep ends at once; a tick may go on for `grace` seconds and is then cancelled. This may be called any
        number of times, by several at once, and from within `tick` (it then returns at once).
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
        run.told = False
        try:
            pause = await self.tick()
        except asyncio.CancelledError as error:
            if run.stopping or _being_cancelled():
                raise
            await self._bear(run, guard, error)  # something inside the tick was cancelled, not the service
        except Exception as error:  # noqa: BLE001 - a service outlives every error of its ticks
            await self._bear(run, guard, error)
        else:
            guard.succeeded()
            self.signals.ticked.send(pause)
            await run.sleep(pause, wakeable=True)

    async def _bear(self, run: _LoopRun, guard: ErrorGuard, error: BaseException) -> None:
        pause = guard.failed(error)
        self.signals.failed.send(error)
        await run.sleep(pause, wakeable=False)  # wakeups must not make a failing service try without a pause


def _ended(run: _LoopRun) -> bool:
    return run.loop.is_closed() or (run.task is not None and run.task.done())


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
