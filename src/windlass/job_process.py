"""The program of a process that runs jobs for a worker: it imports what the worker names, and calls it.

It is not a worker: it claims nothing and writes no outcome. The worker's `ProcessExecutor` starts it
(`windlass.runtime.processes.lifetime`), sends it one job after the other, and kills it.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from windlass.app import Windlass
from windlass.context import JobContext, Snooze, current_context
from windlass.domain.signal import WAIT_IN_TEXT
from windlass.domain.targets import module_of
from windlass.errors import ConfigurationError, TargetNotFoundError
from windlass.runtime import logcontext, middleware
from windlass.runtime.middleware import around
from windlass.runtime.processes import lifetime, log_records
from windlass.runtime.processes.channel import Channel, Reporter
from windlass.runtime.processes.errors import raised
from windlass.runtime.processes.messages import Answer, Ready, Returned, Run, Snoozed, Start
from windlass.spi import InstanceResolver, JobMiddleware, Serializer
from windlass.submission.codec import JsonSerializer, stored_result
from windlass.submission.context_parameters import with_context
from windlass.submission.job_function import Enqueueable
from windlass.submission.registry import Registry
from windlass.submission.signal_texts import read_signal
from windlass.submission.stored_options import from_text
from windlass.submission.submitter import Submitter
from windlass.submission.target import ImportResolver, Known, find_loaded


def main(channel: int, lifeline: int) -> None:
    """Run jobs until the channel is closed."""
    lifetime.begin(lifeline)
    messages = Channel(channel)
    start = messages.receive()
    if isinstance(start, Start):
        JobLoop(messages, start).serve()


class JobLoop:
    """Runs one job after the other on the main thread, so that a body can do whatever a program can."""

    def __init__(self, channel: Channel, start: Start) -> None:
        sys.argv = list(start.argv)
        self._lift_memory_limit = lifetime.limit_memory(start.memory_bytes)
        self._channel = channel
        self._reporter = Reporter(channel)
        self._result_bytes = start.result_bytes
        logcontext.install()
        log_records.forward_records(channel.send, self._reporter.fields)
        log_records.take_levels(start.levels)
        self._program = Program(start)

    def serve(self) -> None:
        """Run each job and send its answer."""
        self._channel.send(Ready())
        while isinstance(job := self._channel.receive(), Run):
            answer = contextvars.copy_context().run(self._run, job)
            if self._channel.closed:
                os._exit(0)  # a process that the body forked, and that returned here
            self._reporter.flush()
            self._channel.send(answer)

    def _run(self, job: Run) -> Answer:
        context = JobContext(job.claim, job.payload, job.node, self._reporter)
        current_context.set(context)
        self._reporter.context, self._reporter.keeps_log = context, job.keeps_log
        try:
            return self._answer(job)
        except Snooze as snooze:
            return Snoozed(snooze.delay)
        except BaseException as error:  # noqa: BLE001 - whatever a body raises is its job's failure
            if isinstance(error, MemoryError):
                self._lift_memory_limit()  # the answer needs memory; the worker then replaces this process
            return raised(_without_our_frames(error))
        finally:
            context.over = True
            self._reporter.context = None
            _flush_output()

    def _answer(self, job: Run) -> Answer:
        log_records.take_levels(job.levels)
        found = self._program.find(job.claim.target, job.home)
        log_records.take_levels(job.levels)  # a module may have configured logging while it was imported
        spec = found.known.spec
        args, kwargs = found.serializer.decode_arguments(spec, job.payload.args)
        if job.payload.options is not None and WAIT_IN_TEXT in job.payload.options:
            JobContext.current().signal = read_signal(from_text(job.payload.options), found.serializer)
        if spec.contexts:
            args, kwargs = with_context(spec.contexts, current_context.get(), args, kwargs)
        function = found.known.ready(found.instances)
        if found.middleware:
            function = around(function, found.middleware, JobContext.current(), is_coroutine=spec.is_coroutine)
        value = asyncio.run(function(*args, **kwargs)) if spec.is_coroutine else function(*args, **kwargs)
        if value is None:
            return Returned(None, None)
        return Returned(*stored_result(found.serializer, value, spec.returns, self._result_bytes))


class RunnableTarget(NamedTuple):
    """A target with its serializer, instances and middleware."""

    known: Known
    serializer: Serializer
    instances: InstanceResolver
    middleware: Sequence[JobMiddleware] = ()


class Program:
    """The program whose jobs are run: its application, if it can be found, and its targets."""

    def __init__(self, start: Start) -> None:
        self._needs_app = start.needs_app
        self._provides = start.provides
        self._found: dict[str, RunnableTarget | TargetNotFoundError] = {}
        self._home, _, name = (start.home or "").partition(":")
        self._app: Windlass | None = None
        self._import_error: TargetNotFoundError | None = None
        if self._home:
            try:
                self._app = _app_named(self._home, name)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - reported by the first job that needs it
                text = f"importing {self._home!r} failed here: {type(error).__name__}: {error}"
                self._import_error = TargetNotFoundError(text)

    def find(self, target: str, home: str | None = None) -> RunnableTarget:
        """Resolve a stored name. The worker has called the target policy already, and knows the function's home."""
        found = self._found.get(target)
        if found is None:
            try:
                found = self._look_up(target, home)
            except TargetNotFoundError as error:
                found = error  # a failed import is not repeated: it may have done half of its work
            self._found[target] = found
        if isinstance(found, TargetNotFoundError):
            raise found
        return found

    def _look_up(self, target: str, home: str | None) -> RunnableTarget:
        app = self._app
        if self._import_error is not None and target.startswith(f"{self._home}:"):
            raise self._import_error
        location = target if app is not None and target in app.registry else self._imported(target, home)
        app = app or _app_behind(location)
        if app is None and self._needs_app:
            raise self._import_error or _homeless(target, "its serializer, invocation resolver or middleware")
        given = Registry() if app is None else app.registry
        if target in given:
            known = given.resolve(target)
        else:
            known = Registry(policy=_AllowAll(), resolver=given.resolver).resolve(location)
        if not isinstance(known, Known):
            raise TargetNotFoundError(known.error)
        if app is None and self._provides and known.owner is not None:
            raise self._import_error or _homeless(target, "the objects it provides")
        if app is None:
            return RunnableTarget(known, JsonSerializer(), given.instances)
        return RunnableTarget(known, app.parts.serializer, given.instances, app.parts.middleware)

    def _imported(self, target: str, home: str | None) -> str:
        """Import the module that declares a target; return the name that leads there: its own, else its home."""
        resolver = ImportResolver() if self._app is None else self._app.registry.resolver
        try:
            resolver.resolve(target)
        except TargetNotFoundError:
            if home is None or module_of(home) == module_of(target):
                raise
            ImportResolver().resolve(home)
            return home
        return target


class _AllowAll:
    """A policy that allows what the worker's policy has allowed."""

    def allows(self, target: str) -> bool:
        return True


def _app_named(module: str, name: str) -> Windlass | None:
    value: Any = getattr(importlib.import_module(module), name, None)
    return value if isinstance(value, Windlass) else None


def _app_behind(target: str) -> Windlass | None:
    """Return the application that a job was declared with."""
    found = find_loaded(target)
    inner = getattr(found.value, "__func__", found.value) if found is not None else None
    submitter = inner.submitter if isinstance(inner, Enqueueable) else None
    app = submitter.registry.app if isinstance(submitter, Submitter) else None
    return app if isinstance(app, Windlass) else None


def _homeless(target: str, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{target} cannot run in a process of its own: it needs {what}, and the application that has them is not found "
        "there; make the application a global of a module"
    )


def _without_our_frames(error: BaseException) -> BaseException:
    """Return the error with a traceback that starts at the body."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, middleware.__file__):
        trace = trace.tb_next
    return error.with_traceback(trace)


def _flush_output() -> None:
    """Flush what a body printed: it must not wait for the next job, nor be lost if this process is killed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
