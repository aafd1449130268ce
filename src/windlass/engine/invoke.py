"""Calls the target: decodes its arguments, gets its object, and runs it as a coroutine, on a thread, or elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from windlass import loggers
from windlass.context import JobContext, Snooze
from windlass.domain.attempt_end import EndAttempt
from windlass.domain.job import Payload
from windlass.domain.options import Unset
from windlass.engine.attempt import (
    RELEASED,
    RETURNED_NOTHING,
    Attempt,
    BodyThread,
    Died,
    Directed,
    Ending,
    Raised,
    Refused,
    Returned,
    Snoozed,
    Stop,
)
from windlass.engine.thread_watch import BodyWatch
from windlass.errors import JobTimeoutError, SerializationError, StopJob, WorkerLostError
from windlass.runtime.middleware import around
from windlass.runtime.threads import BodyExit, BodyStillRuns, Turn
from windlass.spi import (
    EncodedResult,
    ExecutorProvider,
    InstanceResolver,
    Invocation,
    JobExecutor,
    JobMiddleware,
    Serializer,
)
from windlass.submission.codec import stored_result
from windlass.submission.context_parameters import with_context
from windlass.submission.signal_texts import read_signal
from windlass.submission.target import Known

logger = loggers.logger("windlass.job")


class AttemptLimits(NamedTuple):
    """The limits of an invocation."""

    max_result_bytes: int
    default_timeout: float | None


class Invoker:
    """Runs one body and returns how it ended; raises nothing but its own cancellation at shutdown.

    `thread_ended` is called when a body has ended on its thread, if it was interrupted or holds permits: on the loop
    or, when that is closed, on the body's thread.
    """

    def __init__(
        self,
        serializer: Serializer,
        instances: InstanceResolver,
        executors: ExecutorProvider,
        limits: AttemptLimits,
        thread_ended: Callable[[Attempt], None],
        middleware: Sequence[JobMiddleware] = (),
    ) -> None:
        self._serializer = serializer
        self._instances = instances
        self._executors = executors
        self._limits = limits
        self._middleware = middleware
        self._elsewhere: JobExecutor | None = None
        self._loop = asyncio.get_running_loop()
        self._thread_ended = thread_ended

    async def invoke(self, attempt: Attempt, payload: Payload, known: Known) -> Ending:
        """Enter the body."""
        options, serializer = attempt.options, self._serializer
        try:
            context = attempt.context if options.signal is None else self._signaled(attempt)
            args, kwargs = serializer.decode_arguments(known.spec, payload.args)
        except SerializationError as error:
            return Refused(error, "poison_payload")
        chosen = options.executor
        if chosen == "process":
            return await self._invoke_elsewhere(attempt, payload, known, args, kwargs)
        if known.spec.contexts:
            args, kwargs = with_context(known.spec.contexts, context, args, kwargs)
        kind = _kind(chosen, known)
        attempt.thread = thread = BodyThread() if kind == "thread" else None
        watch = self._watch(attempt, thread) if thread is not None and attempt.claim.holds is not None else None
        try:
            function = self._inside_middleware(attempt, known) if self._middleware else known.ready(self._instances)
            if watch is not None:
                function = watch.around(function, is_coroutine=known.spec.is_coroutine)
            executor = self._executors.executor(kind)
            if getattr(executor, "runs_on_loop", False):  # what its `run` does, without the call: this is the hot path
                value = await function(*args, **kwargs)
            elif attempt.turn is not None:
                value = await attempt.turn.run(partial(function, *args, **kwargs))
            else:
                value = await executor.run(Invocation(known.target, function, args, kwargs, attempt.timeout))
        except BaseException as error:  # noqa: BLE001 - whatever a body raises is its job's failure
            if isinstance(error, BodyStillRuns) and watch is None and thread is not None:
                # It may hold a permit that its claim does not know: of a limit that was set while it ran.
                thread.goes_on = True
                error.when_ended(partial(self._body_ended, attempt, thread))
            return self.raised(attempt, error.error if isinstance(error, BodyExit) else error)
        finally:
            if watch is not None and thread is not None and watch.never_begins():
                thread.goes_on = False
        if attempt.stop is Stop.TIMEOUT:
            return Raised(self._timeout(attempt))
        return RETURNED_NOTHING if value is None else self._returned(attempt, known, value)

    def _signaled(self, attempt: Attempt) -> JobContext | None:
        """Give the signal that a job awaited to its context, and return that."""
        context = attempt.context
        if context is not None:
            context.signal = read_signal(attempt.options, self._serializer)
        return context

    def _inside_middleware(self, attempt: Attempt, known: Known) -> Callable[..., Any]:
        assert attempt.context is not None
        function = known.ready(self._instances)
        return around(function, self._middleware, attempt.context, is_coroutine=known.spec.is_coroutine)

    def turn_for(self, attempt: Attempt, known: Known, until: float) -> Turn | None:
        """Return a position in the line for a thread, for a body that runs on our threads and holds no permits."""
        if attempt.claim.holds is not None or attempt.options.executor == "process" or known.spec.is_coroutine:
            return None
        make_turn = getattr(self._executors.executor("thread"), "turn_until", None)
        return None if make_turn is None else make_turn(until)

    def _watch(self, attempt: Attempt, thread: BodyThread) -> BodyWatch:
        """Return a watch: an interrupted body may run on for a while, and its permits are not free before it ends."""
        thread.goes_on = True
        return BodyWatch(partial(self._body_ended, attempt, thread))

    def _body_ended(self, attempt: Attempt, thread: BodyThread) -> None:
        """Handle the end of a body. Runs on its thread."""
        thread.ended = True
        try:
            self._loop.call_soon_threadsafe(self._thread_ended, attempt)
        except RuntimeError:  # the loop is closed, and its node has ended
            self._thread_ended(attempt)

    async def _invoke_elsewhere(
        self, attempt: Attempt, payload: Payload, known: Known, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Ending:
        """Run the body in another process, which finds its function and object, and may encode the result."""
        try:
            self._elsewhere = executor = self._executors.executor("process")
            node = attempt.context.node if attempt.context is not None else ""
            job = (attempt.claim, payload, node)
            value = await executor.run(Invocation(known.target, known.function, args, kwargs, attempt.timeout, *job))
        except WorkerLostError as error:
            return Died(error) if attempt.stop is None else self.raised(attempt, asyncio.CancelledError())
        except BaseException as error:  # noqa: BLE001 - whatever a body raises is its job's failure
            return self.raised(attempt, error.error if isinstance(error, BodyExit) else error)
        if type(value) is EncodedResult:  # not isinstance: it calls the value's class, which may raise
            self._warn(attempt, value.warning)
            return Returned(value.text)
        return RETURNED_NOTHING if value is None else self._returned(attempt, known, value)

    async def close(self) -> None:
        """Close the executors; the one for processes only if it was used: not every provider has one."""
        for executor in (self._executors.executor("async"), self._executors.executor("thread"), self._elsewhere):
            if executor is not None:
                await executor.close()

    def _returned(self, attempt: Attempt, known: Known, value: Any) -> Returned:
        limit = self._limits.max_result_bytes
        result, warning = stored_result(self._serializer, value, known.spec.returns, limit)
        self._warn(attempt, warning)
        return Returned(result)

    def _warn(self, attempt: Attempt, warning: str | None) -> None:
        if warning:
            logger.warning("job %s (%s): %s", attempt.claim.job_id, attempt.claim.target, warning)

    def raised(self, attempt: Attempt, error: BaseException) -> Ending:
        """Return the ending for an error of the body, or for being stopped.

        SystemExit and a foreign CancelledError are failures of the job.
        """
        if attempt.stop is Stop.TIMEOUT and not isinstance(error, Snooze):
            return Raised(self._timeout(attempt, error))
        if attempt.stop is not None and isinstance(error, asyncio.CancelledError | StopJob):
            return RELEASED
        if isinstance(error, Snooze):
            return Snoozed(error.delay)
        if isinstance(error, EndAttempt):
            attempt.cargo = error.cargo
            return Directed(error)
        return Raised(error)

    def _timeout(self, attempt: Attempt, error: BaseException | None = None) -> JobTimeoutError:
        timeout = JobTimeoutError(f"the job ran longer than its timeout of {attempt.timeout:g} s")
        if error is not None and not isinstance(error, asyncio.CancelledError | StopJob):
            timeout.__cause__ = error
        return timeout

    def timeout_of(self, attempt: Attempt) -> float | None:
        """Return the seconds an attempt may take; None for no limit."""
        given = attempt.options.timeout
        return self._limits.default_timeout if isinstance(given, Unset) else given


def _kind(chosen: str | None, known: Known) -> str:
    """Return the executor of the job's option, else by kind of function. Sync functions never run on the loop."""
    if not known.spec.is_coroutine:
        return "thread"
    return chosen or "async"
