"""Executors for tests: bodies of jobs run in the caller's thread, one after another."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from windlass.context import Snooze
from windlass.domain.attempt_end import EndAttempt
from windlass.runtime.executors import LoopExecutor
from windlass.runtime.threads import BodyExit, Interrupted
from windlass.spi import Invocation, JobExecutor
from windlass.submission.registry import Registry

T = TypeVar("T")

_OF_THE_JOB = (Exception, SystemExit, asyncio.CancelledError, Snooze, EndAttempt, Interrupted)
"""Exceptions that fail the job. Others (Ctrl-C, pytest.fail) are meant for the test run."""


class CallerThread:
    """Runs sync bodies between two turns of a private loop, on the thread that drives it.

    The loop is stopped meanwhile and does not count as running, so a body may use its own loop (`asyncio.run`) or
    block, as it may on the threads of a worker.
    """

    def __init__(self) -> None:
        self._bodies: deque[Callable[[], None]] = deque()

    async def run(self, invocation: Invocation, /) -> object:
        """Have `drive` run the body."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[object] = loop.create_future()
        call = partial(invocation.function, *invocation.args, **invocation.kwargs)
        if inspect.iscoroutinefunction(invocation.function):
            call = partial(_run_coroutine, call)
        self._bodies.append(partial(_settle, ended, partial(contextvars.copy_context().run, call)))
        loop.stop()
        try:
            return await ended
        finally:
            await asyncio.sleep(0)  # the loop runs its timers: a body that took too long times out here

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on a private loop to its end, and the bodies it needs on this thread."""
        # A private factory, so that a loop which the test may have set for this thread is not replaced.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            loop = runner.get_loop()
            task = loop.create_task(work)
            task.add_done_callback(lambda _: loop.stop())
            while not task.done():
                loop.run_forever()
                if self._bodies:
                    self._bodies.popleft()()
                if self._bodies:  # items of an execution: one after another, with a turn of the loop between them
                    loop.call_soon(loop.stop)
            return task.result()


def _run_coroutine(call: Callable[[], Coroutine[Any, Any, object]]) -> object:
    return asyncio.run(call())


def _settle(ended: asyncio.Future[object], call: Callable[[], object]) -> None:
    if ended.cancelled():
        return
    try:
        value = call()
    except BaseException as error:  # noqa: BLE001 - the engine handles it, and then `Bodies` decides whose it is
        ended.set_exception(BodyExit(error))
    else:
        ended.set_result(value)


class Bodies:
    """An `ExecutorProvider` that keeps what the last body raised: coroutines on the loop, others on `sync`."""

    def __init__(self, sync: JobExecutor, registry: Registry) -> None:
        self.raised: BaseException | None = None
        self._loop = _Watched(LoopExecutor(), self)
        self._sync = _Watched(sync, self)
        self._process = _Watched(_NoProcess(sync, registry), self)

    def executor(self, kind: str) -> JobExecutor:
        """Return the executor of a kind."""
        return {"async": self._loop, "process": self._process}.get(kind, self._sync)

    @property
    def failure(self) -> BaseException | None:
        """What the last body failed with; None if it was stopped from outside, or not entered."""
        return None if isinstance(self.raised, asyncio.CancelledError | Interrupted) else self.raised

    @property
    def not_of_the_job(self) -> BaseException | None:
        """What the last body raised that is meant for the test run."""
        return None if isinstance(self.raised, _OF_THE_JOB) else self.raised


class _NoProcess:
    """Runs bodies meant for another process in this one. They come by name only, and are looked up here."""

    def __init__(self, sync: JobExecutor, registry: Registry) -> None:
        self._sync = sync
        self._registry = registry

    async def run(self, invocation: Invocation, /) -> object:
        function = self._registry.admit(invocation.target).ready(self._registry.instances)
        return await self._sync.run(invocation._replace(function=function))

    async def close(self) -> None:
        await self._sync.close()


class _Watched:
    def __init__(self, executor: JobExecutor, bodies: Bodies) -> None:
        self._executor = executor
        self._bodies = bodies

    async def run(self, invocation: Invocation, /) -> object:
        try:
            return await self._executor.run(invocation)
        except BaseException as error:
            if self._bodies.raised is None:  # predicates run after the body, and what it raised is of more interest
                self._bodies.raised = error.error if isinstance(error, BodyExit) else error
            raise

    async def close(self) -> None:
        await self._executor.close()
