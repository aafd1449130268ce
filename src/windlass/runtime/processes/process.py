"""One process that runs jobs, as its worker sees it: start it, give it jobs, read its messages, kill it."""

from __future__ import annotations

import asyncio
import contextvars
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import msgspec

from windlass import loggers
from windlass.context import current_context
from windlass.errors import WorkerLostError
from windlass.runtime.processes import lifetime, log_records
from windlass.runtime.processes.messages import (
    Answer,
    ContextCall,
    FromProcess,
    LogLine,
    Ready,
    Run,
    Start,
    Unframer,
    decode_from_process,
    framed,
)

logger = loggers.logger("windlass.process")

START_LIMIT = 120.0
"""Seconds in which a process must have imported the program."""
LAST_BYTES = 0.5
"""Seconds to read the last messages of an exited process; a process it forked may keep the channel open."""
CONTEXT_METHODS = ("progress",)
"""Methods of the worker's context that a body may call."""


class JobProcess(asyncio.Protocol):
    """A process and the channel to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.jobs = 0
        """Number of jobs it was given."""
        self.exit_code: int | None = None
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done once it has exited and all its messages were read."""
        self._loop = loop
        self._unframer = Unframer()
        self._context: contextvars.Context | None = None
        self._ready: asyncio.Future[None] = loop.create_future()
        self._answer: asyncio.Future[Answer] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._channel: socket.socket | None = None
        self._lifeline: int | None = None
        self._cut_off = False
        self._closing = False

    @property
    def pid(self) -> int | None:
        """Its process id, once it was started."""
        return None if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be given a job."""
        return self.exit_code is None and not (self._cut_off or self._closing)

    # ------------------------------------------------------------------ jobs

    async def start(self, start: Start) -> None:
        """Spawn it and wait until it is ready; raise WorkerLostError if it never is."""
        self._process, self._channel, self._lifeline = lifetime.spawn()
        threading.Thread(target=self._wait, args=(self._process,), name="windlass-process-wait", daemon=True).start()
        await self._loop.create_unix_connection(lambda: self, sock=self._channel)
        self._send(start)
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), START_LIMIT)
        except TimeoutError:
            self.kill()
            raise WorkerLostError(f"the job's process did not start within {START_LIMIT:g} s") from None

    async def run(self, job: Run) -> Answer:
        """Run a job and return its answer; raise WorkerLostError if the process dies.

        Cancelling this does not end the job; `kill` does.
        """
        self.jobs += 1
        self._context = contextvars.copy_context()
        self._answer = self._loop.create_future()
        if not self.alive:
            self._lost()
        else:
            self._send(job)
        try:
            return await self._answer
        finally:
            self._answer = self._context = None

    def close(self) -> None:
        """Let it exit, which it does when the channel is closed."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def kill(self) -> None:
        """Send SIGKILL to it and to everything it started."""
        if self._process is not None:
            lifetime.kill(self._process)
        if self._transport is not None:
            self._transport.abort()

    def forget(self) -> None:
        """Close our ends in a forked child: the process is the parent's, and must not outlive it because of us."""
        if self._channel is not None:
            self._channel.close()
        self._close_lifeline()

    def _send(self, message: Start | Run) -> None:
        if self._transport is not None:
            self._transport.write(framed(message))

    # ------------------------------------------------------------------ its messages

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the open channel."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
        """Handle the messages in these bytes."""
        try:
            for text in self._unframer.feed(data):
                self._handle(decode_from_process(text))
        except (ValueError, msgspec.DecodeError) as error:
            logger.error("killing process %s: it sent an invalid message (%s)", self.pid, error)
            self.kill()

    def _handle(self, message: FromProcess) -> None:
        if isinstance(message, LogLine):
            self._in_context(lambda: log_records.handle(message))
        elif isinstance(message, ContextCall):
            self._in_context(lambda: _call(message))
        elif isinstance(message, Ready):
            if not self._ready.done():
                self._ready.set_result(None)
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(message)

    def _in_context(self, act: Callable[[], None]) -> None:
        """Act with the context variables of the attempt that runs in the process."""
        try:
            (self._context or contextvars.copy_context()).run(act)
        except Exception as error:  # noqa: BLE001 - users' handlers, which must not end the process
            logger.error("could not handle a message of process %s: %s", self.pid, type(error).__name__)

    # ------------------------------------------------------------------ its end

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the closed channel: the process has exited, or is no longer usable."""
        self._cut_off = True
        if self.exit_code is None and not self._closing:
            self.kill()
        self._when_over()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        lifetime.await_the_end_of(process)
        code = process.wait()
        with suppress(RuntimeError):  # the loop is closed: no task is waiting
            self._loop.call_soon_threadsafe(self._exited, code)

    def _exited(self, code: int) -> None:
        self.exit_code = code
        self._close_lifeline()
        if self._transport is not None and not self._cut_off:
            self._loop.call_later(LAST_BYTES, self._transport.abort)
        self._when_over()

    def _when_over(self) -> None:
        if self.exit_code is None or not (self._cut_off or self._transport is None):
            return
        self._lost()
        if not self.gone.done():
            self.gone.set_result(None)

    def _lost(self) -> None:
        how = "is gone" if self.exit_code is None else lifetime.how_it_ended(self.exit_code)
        error = WorkerLostError(f"the job's process {self.pid} {how}")
        for waiting in (self._ready, self._answer):
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)
                waiting.exception()  # no task may be waiting for it

    def _close_lifeline(self) -> None:
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)


def _call(message: ContextCall) -> None:
    method = getattr(current_context.get(), message.method, None)
    if method is not None and message.method in CONTEXT_METHODS:
        method(*message.args)
