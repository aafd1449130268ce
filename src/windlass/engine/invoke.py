"""Calls the target: decodes its arguments, finds its object, and runs it as a coroutine or on a thread."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple

from windlass.context import JobCancelled, Snooze
from windlass.domain.job import Payload
from windlass.domain.options import Unset
from windlass.engine.attempt import (
    HANDED,
    RETURNED_NOTHING,
    Attempt,
    Ending,
    Raised,
    Refused,
    Returned,
    Snoozed,
    Stop,
)
from windlass.errors import JobTimeoutError, SerializationError
from windlass.runtime.threads import BodyExit
from windlass.spi import ExecutorProvider, InstanceResolver, Invocation, Serializer
from windlass.submission.target import Known

logger = logging.getLogger("windlass.job")


class Limits(NamedTuple):
    """What bounds an invocation."""

    max_result_bytes: int
    default_timeout: float | None


class Invoker:
    """Runs one body and says how it ended; never raises anything but its own cancellation at shutdown."""

    def __init__(
        self, serializer: Serializer, instances: InstanceResolver, executors: ExecutorProvider, limits: Limits
    ) -> None:
        self._serializer = serializer
        self._instances = instances
        self._executors = executors
        self._limits = limits

    async def invoke(self, attempt: Attempt, payload: Payload, known: Known) -> Ending:
        """Enter the body."""
        try:
            args, kwargs = self._serializer.decode_arguments(known.spec, payload.args)
        except SerializationError as error:
            return Refused(error, "poison_payload")
        try:
            function = known.ready(self._instances)
            executor = self._executors.executor(_kind(attempt, known))
            value = await executor.run(Invocation(known.target, function, args, kwargs, attempt.timeout))
        except BaseException as error:  # noqa: BLE001 - whatever a body raises is its job's failure
            return self._raised(attempt, error.error if isinstance(error, BodyExit) else error)
        if attempt.stop is Stop.TIMEOUT:
            return Raised(self._timeout(attempt))
        return RETURNED_NOTHING if value is None else self._returned(attempt, known, value)

    def _returned(self, attempt: Attempt, known: Known, value: Any) -> Returned:
        result, warning = self._serializer.encode_result(value, known.spec.returns, self._limits.max_result_bytes)
        if warning:
            logger.warning("job %s (%s): %s", attempt.claim.job_id, attempt.claim.target, warning)
        return Returned(result)

    def _raised(self, attempt: Attempt, error: BaseException) -> Ending:
        """An error from the body, or from being stopped.

        SystemExit and a foreign CancelledError are the job's own failure.
        """
        if attempt.stop is Stop.TIMEOUT and not isinstance(error, Snooze):
            return Raised(self._timeout(attempt, error))
        if attempt.stop is not None and isinstance(error, asyncio.CancelledError | JobCancelled):
            return HANDED
        if isinstance(error, Snooze):
            return Snoozed(error.delay)
        return Raised(error)

    def _timeout(self, attempt: Attempt, error: BaseException | None = None) -> JobTimeoutError:
        timeout = JobTimeoutError(f"the job ran longer than its timeout of {attempt.timeout:g} s")
        if error is not None and not isinstance(error, asyncio.CancelledError | JobCancelled):
            timeout.__cause__ = error
        return timeout

    def timeout_of(self, attempt: Attempt) -> float | None:
        """The seconds an attempt may take; None for no limit."""
        given = attempt.options.timeout
        return self._limits.default_timeout if isinstance(given, Unset) else given


def _kind(attempt: Attempt, known: Known) -> str:
    """The executor the job asks for, else by kind of function. Sync functions never run on the loop."""
    if not known.spec.is_coroutine:
        return "thread"
    return attempt.options.executor or "async"
