"""Where bodies run by default: coroutines on the worker's loop, everything else on threads, processes on demand."""

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
        cls.runs_on_loop = False  # its `run` may do more

    async def run(self, invocation: Invocation, /) -> object:
        """Run the body here."""
        return await invocation.function(*invocation.args, **invocation.kwargs)

    async def close(self) -> None:
        """Nothing to give up."""


class ThreadExecutor:
    """Runs sync functions on threads, and coroutine functions on a loop of their own in a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._threads = ThreadBodies(loop)

    async def run(self, invocation: Invocation, /) -> object:
        """Run the body on a thread; cancelling this interrupts it as far as Python can."""
        body = partial(invocation.function, *invocation.args, **invocation.kwargs)
        if inspect.iscoroutinefunction(invocation.function):
            return await self._threads.run(lambda: asyncio.run(body()))
        return await self._threads.run(body)

    def turn_until(self, until: float) -> Turn:
        """A place in line, until then by the monotonic clock, for a body of a plain function."""
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
        """The executor of a kind."""
        return self._by_kind[kind]
