"""Pool of processes that run bodies: reuses idle processes, starts one when none is idle, replaces dead ones."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import NamedTuple

from windlass.context import JOB_LOGGER, Snooze, current_context
from windlass.errors import ConfigurationError
from windlass.runtime.forks import after_fork
from windlass.runtime.global_names import importable
from windlass.runtime.processes import log_records
from windlass.runtime.processes.errors import rebuilt
from windlass.runtime.processes.messages import Answer, Returned, Run, Snoozed, Start
from windlass.runtime.processes.process import JobProcess
from windlass.runtime.threads import BodyExit
from windlass.spi import EncodedResult, Invocation

IDLE_SECONDS = 300.0
"""Seconds after which an idle process is ended."""
EXIT_GRACE = 2.0
"""Seconds for a process to exit by itself when it is no longer needed; then it is killed."""


class ProcessSettings(NamedTuple):
    """What processes need to know about the application; see `Start`."""

    home: str | None = None
    needs_app: bool = False
    provides: bool = False


class ProcessOptions(NamedTuple):
    """Options of the processes."""

    jobs: int
    """Number of jobs after which a process is replaced."""
    memory_bytes: int | None
    result_bytes: int
    settings: Callable[[], ProcessSettings] = ProcessSettings
    """Called when the first process starts."""


class ProcessExecutor:
    """The default executor of kind `"process"`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, options: ProcessOptions) -> None:
        self._loop = loop
        self._options = options
        self._settings: ProcessSettings | None = None
        self._processes: set[JobProcess] = set()
        self._idle: dict[JobProcess, asyncio.TimerHandle] = {}
        self._unclaimed: set[asyncio.Task[JobProcess]] = set()
        """Processes still starting whose job was cancelled, so that a short timeout does not restart them each time."""
        after_fork(self._forget)

    async def run(self, invocation: Invocation, /) -> object:
        """Run the body in a process; cancelling this kills the process."""
        job = _job(invocation)
        process = await self._free_process()
        try:
            answer = await process.run(job)
        except asyncio.CancelledError:
            process.kill()
            raise
        self._take_back(process, answer)
        return _value(answer)

    async def close(self) -> None:
        """End all processes: idle ones exit by themselves, those that do not in time are killed."""
        for task in self._unclaimed:
            task.cancel()
        for process in list(self._processes):
            self._retire(process)
        await self._all_gone()
        for process in list(self._processes):
            process.kill()
        await self._all_gone()

    async def _all_gone(self) -> None:
        if self._processes:
            await asyncio.wait({process.gone for process in self._processes}, timeout=EXIT_GRACE)

    # ------------------------------------------------------------------ idle processes

    async def _free_process(self) -> JobProcess:
        while self._idle:
            process, timer = self._idle.popitem()  # the most recently used one, so that the others can time out
            timer.cancel()
            if process.alive:
                return process
        starting = self._unclaimed.pop() if self._unclaimed else self._loop.create_task(self._start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._unclaimed.add(starting)
            starting.add_done_callback(self._keep_unclaimed)
            raise

    async def _start(self) -> JobProcess:
        process = JobProcess(self._loop)
        self._processes.add(process)
        process.gone.add_done_callback(lambda _: self._gone(process))
        try:
            await process.start(self._first_message())
        except BaseException:
            process.kill()
            if process.pid is None:  # it never started, so `gone` is never set
                self._gone(process)
            raise
        return process

    def _first_message(self) -> Start:
        if self._settings is None:
            self._settings = self._options.settings()
        home, needs_app, provides = self._settings
        memory, result = self._options.memory_bytes, self._options.result_bytes
        return Start(list(sys.argv), home, needs_app, provides, memory, result, log_records.levels())

    def _keep_unclaimed(self, starting: asyncio.Task[JobProcess]) -> None:
        if starting in self._unclaimed:
            self._unclaimed.discard(starting)
            if not starting.cancelled() and starting.exception() is None:
                self._keep(starting.result())

    def _take_back(self, process: JobProcess, answer: Answer) -> None:
        out_of_memory = not isinstance(answer, Returned | Snoozed) and "builtins:MemoryError" in answer.error.kinds
        if process.jobs >= self._options.jobs or out_of_memory:
            self._retire(process)
        else:
            self._keep(process)

    def _keep(self, process: JobProcess) -> None:
        if process.alive:
            self._idle[process] = self._loop.call_later(IDLE_SECONDS, self._retire, process)

    # ------------------------------------------------------------------ exits

    def _retire(self, process: JobProcess) -> None:
        timer = self._idle.pop(process, None)
        if timer is not None:
            timer.cancel()
        process.close()
        self._loop.call_later(EXIT_GRACE, process.kill)

    def _gone(self, process: JobProcess) -> None:
        self._processes.discard(process)
        timer = self._idle.pop(process, None)
        if timer is not None:
            timer.cancel()

    def _forget(self) -> None:
        for process in self._processes:
            process.forget()
        self._processes, self._idle, self._unclaimed = set(), {}, set()


def _job(invocation: Invocation) -> Run:
    if invocation.claim is None or invocation.payload is None:
        raise ConfigurationError(
            "a job's process needs the claim and the payload of its job: set them in the Invocation"
        )
    context = current_context.get()
    keeps_log = context is not None and context.keeps(JOB_LOGGER)
    home = _home(invocation.function)
    return Run(invocation.claim, invocation.payload, invocation.node, log_records.levels(), keeps_log, home)


def _home(function: object) -> str | None:
    module, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(qualname, str)):
        return None
    return f"{importable(module)}:{qualname}"


def _value(answer: Answer) -> EncodedResult:
    """Return the body's result; raise its error in a carrier that distinguishes it from our own errors."""
    if isinstance(answer, Returned):
        return EncodedResult(answer.result, answer.warning)
    if isinstance(answer, Snoozed):
        raise BodyExit(Snooze(answer.delay))
    raise BodyExit(rebuilt(answer))
