"""Where the bodies of jobs run in tests: in the caller's thread, one after another."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from windlass.context import Snooze
from windlass.runtime.executors import LoopExecutor
from windlass.runtime.threads import BodyExit, Interrupted
from windlass.spi import Invocation, JobExecutor
from windlass.submission.registry import Registry

T = TypeVar("T")

_OF_THE_JOB = (Exception, SystemExit, asyncio.CancelledError, Snooze, Interrupted)
"""What a body raises on its own account. The rest (Ctrl-C, pytest.fail) is meant for whoever runs the test."""


class CallerThread:
    """Runs sync bodies between two turns of a private loop, on the thread that drives it.

    The loop stands still meanwhile and does not count as running, so a body may use one of its own (`asyncio.run`) or
    wait for what it likes, as it may on the threads of a worker.
    """

    def __init__(self) -> None:
        self._body: Callable[[], None] | None = None

    async def run(self, invocation: Invocation, /) -> object:
        """Have the body run by `drive`."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[object] = loop.create_future()
        call = partial(invocation.function, *invocation.args, **invocation.kwargs)
        if inspect.iscoroutinefunction(invocation.function):
            call = partial(_run_coroutine, call)
        self._body = partial(_settle, ended, partial(contextvars.copy_context().run, call))
        loop.stop()
        try:
            return await ended
        finally:
            await asyncio.sleep(0)  # the loop looks at its timers: a body that took too long is told so here

    async def close(self) -> None:
        """Nothing to give up."""

    def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on a private loop to its end, and on this thread the bodies it asks for."""
        # A factory of our own, so that the loop which the test may have set for this thread stays as it is.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            loop = runner.get_loop()
            task = loop.create_task(work)
            task.add_done_callback(lambda _: loop.stop())
            while not task.done():
                loop.run_forever()
                body, self._body = self._body, None
                if body is not None:
                    body()
            return task.result()


def _run_coroutine(call: Callable[[], Coroutine[Any, Any, object]]) -> object:
    return asyncio.run(call())


def _settle(ended: asyncio.Future[object], call: Callable[[], object]) -> None:
    try:
        value = call()
    except BaseException as error:  # noqa: BLE001 - the engine judges it, and then `Bodies` whose it is
        ended.set_exception(BodyExit(error))
    else:
        ended.set_result(value)


class Bodies:
    """An `ExecutorProvider` that remembers what the last body raised: coroutines on the loop, all else on `sync`."""

    def __init__(self, sync: JobExecutor, registry: Registry) -> None:
        self.raised: BaseException | None = None
        self._loop = _Watched(LoopExecutor(), self)
        self._sync = _Watched(sync, self)
        self._process = _Watched(_NoProcess(sync, registry), self)

    def executor(self, kind: str) -> JobExecutor:
        """The executor of a kind."""
        return {"async": self._loop, "process": self._process}.get(kind, self._sync)

    @property
    def failure(self) -> BaseException | None:
        """What the last body failed by; None where it was stopped from outside, or not entered."""
        return None if isinstance(self.raised, asyncio.CancelledError | Interrupted) else self.raised

    @property
    def not_of_the_job(self) -> BaseException | None:
        """What the last body raised that is meant for whoever runs the test."""
        return None if isinstance(self.raised, _OF_THE_JOB) else self.raised


class _NoProcess:
    """Runs what is meant for another process in this one. Only the name of such a body is given: it is found here."""

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
        self._bodies.raised = None
        try:
            return await self._executor.run(invocation)
        except BaseException as error:
            self._bodies.raised = error.error if isinstance(error, BodyExit) else error
            raise

    async def close(self) -> None:
        await self._executor.close()
