"""The default executors: coroutines on the worker's loop, other functions on threads, processes on request."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial

from windlass.runtime.processes.pool import ProcessExecutor, ProcessOptions
from windlass.runtime.threads import ThreadBodies, Turn
from windlass.spi import Invocation, JobExecutor


class LoopExecutor:
    """Awaits coroutine functions on the running loop."""

    runs_on_loop = True

    def __init_subclass__(cls) -> None:
        cls.runs_on_loop = False  # a subclass may do more in `run`

    async def run(self, invocation: Invocation, /) -> object:
        """Await the body on this loop."""
        return await invocation.function(*invocation.args, **invocation.kwargs)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


class ThreadExecutor:
    """Runs sync functions on threads, and coroutine functions with `asyncio.run` on a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._threads = ThreadBodies(loop)

    async def run(self, invocation: Invocation, /) -> object:
        """Run the body on a thread. Cancelling this interrupts the body as far as Python can."""
        body = partial(invocation.function, *invocation.args, **invocation.kwargs)
        if inspect.iscoroutinefunction(invocation.function):
            return await self._threads.run(lambda: asyncio.run(body()))
        return await self._threads.run(body)

    def turn_until(self, until: float) -> Turn:
        """Return a position in the line for a sync body, valid until this time of the monotonic clock."""
        return Turn(self._threads, until)

    async def close(self) -> None:
        """Let idle threads end."""
        self._threads.close()


class LocalExecutors:
    """The default `ExecutorProvider`, for one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, processes: ProcessOptions) -> None:
        self._by_kind: dict[str, JobExecutor] = {
            "async": LoopExecutor(),
            "thread": ThreadExecutor(loop),
            "process": ProcessExecutor(loop, processes),
        }

    def executor(self, kind: str) -> JobExecutor:
        """Return the executor of a kind."""
        return self._by_kind[kind]
