"""Callbacks: `on_success` and `on_failure` as jobs of their own, stored by the transaction that writes the outcome.

Either both are committed or neither is: a crash loses no callback, and none runs for an outcome that did not happen.
Nothing here may stop an outcome from being written, so whatever cannot be read or put into words is left out, and
the callback follows all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from windlass import loggers
from windlass.domain.identity import new_job_ids
from windlass.domain.job import EndedJob, NewJob
from windlass.domain.job_result import JobResult
from windlass.domain.states import JobStatus
from windlass.domain.tags import tags_of, tags_text
from windlass.errors import JobFailedError, SerializationError
from windlass.spi import Serializer
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import jobs, reads
from windlass.submission.by_name import ANY_CALL
from windlass.submission.callbacks import Mark, filled
from windlass.submission.codec import NO_LIMIT, plain_arguments
from windlass.submission.registry import Registry
from windlass.submission.signature import CallSpec
from windlass.submission.stored_options import StoredCallback, from_text
from windlass.submission.tagged import plain

logger = loggers.logger("windlass.callbacks")


class Due(NamedTuple):
    """A callback and the outcome it follows."""

    callback: StoredCallback
    job: EndedJob


class Callbacks:
    """Turns outcomes into the jobs that follow them."""

    def __init__(self, registry: Registry, serializer: Serializer, known_queues: Collection[str]) -> None:
        self._known_queues = known_queues
        self._registry = registry
        self._serializer = serializer

    def store(self, dialect: Dialect, due: Sequence[Due]) -> Plan[None]:
        """Store what is due, in the transaction of the outcomes."""
        rows = [self._row(job_id, *item) for job_id, item in zip(new_job_ids(len(due)), due, strict=True)]
        own = {callback.queue for callback, _ in due if callback.queue is not None}
        own_queues = sorted(own.difference(self._known_queues))
        yield from jobs.follow(dialect, rows, own_queues)

    def of_given_up(self, dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
        """Store the callbacks of jobs that failed outside of any attempt, in the transaction in which they did."""
        found = yield from reads.given_up(dialect, ids)
        due = [Due(callback, job) for options, job in found if (callback := _on_failure(options)) is not None]
        if due:
            yield from self.store(dialect, due)

    def _row(self, job_id: str, callback: StoredCallback, job: EndedJob) -> NewJob:
        return NewJob(
            id=job_id,
            queue=callback.queue or job.queue,
            target=callback.target,
            priority=callback.priority,
            args=self._arguments(callback, job),
            due_at=callback.due_at,
            delay_us=callback.delay_us,
            options=callback.options,
            tags=tags_text(callback.tags),
            params=callback.params,
            correlation_id=callback.correlation_id or job.correlation_id or job.job_id,
            parent_id=job.job_id,
            lane=callback.lane,
            expires_at=callback.expires_at,
            expires_us=callback.expires_us,
        )

    # ------------------------------------------------------------------ arguments

    def _arguments(self, callback: StoredCallback, job: EndedJob) -> str:
        """The serializer's text for the callback's arguments.

        The callback's function need not be known here: its arguments are written without its signature, and read by it.
        """
        result = self._result(job)
        error = JobFailedError(result.job_id, job.reason or "", job.error or "", job.error_class or "")
        values = {Mark.VALUE: result.value, Mark.OUTCOME: result, Mark.ERROR: error, Mark.ERROR_TEXT: job.error}
        try:
            args, kwargs = filled(callback, values)
            return self._serializer.encode_arguments(ANY_CALL, args, kwargs, NO_LIMIT)
        except Exception as refused:  # noqa: BLE001 - a serializer of the user's
            logger.error(
                "the callback %s of job %s: its arguments could not be written (%s); it will fail for want of them",
                callback.target,
                job.job_id,
                type(refused).__name__,
            )
            return _NOTHING

    def _result(self, job: EndedJob) -> JobResult:
        spec = self._spec(job.target)
        args, kwargs = self._given(job, spec)
        return JobResult(
            job_id=UUID(job.job_id),
            target=job.target,
            args=args,
            kwargs=kwargs,
            tags=tags_of(job.tags),
            params=_params(job.params),
            reason=job.reason,
            succeeded=job.status is JobStatus.SUCCEEDED,
            failed=job.status is JobStatus.FAILED,
            value=self._value(job, spec),
            error=job.error,
            error_class=job.error_class,
            run_ms=job.run_ms,
            attempts=job.attempts,
        )

    def _spec(self, target: str) -> CallSpec | None:
        try:
            return self._registry.spec_of(target)
        except Exception:  # noqa: BLE001 - a policy of the user's
            return None

    def _given(self, job: EndedJob, spec: CallSpec | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """By the signature; as they are stored if they no longer fit it; none if nobody can read them."""
        try:
            if spec is not None:
                args, kwargs = self._serializer.decode_arguments(spec, job.args)
                return tuple(map(plain, args)), {name: plain(value) for name, value in kwargs.items()}
        except Exception:  # noqa: BLE001, S110 - also users' code: serializers, validators
            pass
        try:
            return plain_arguments(job.args)
        except (SerializationError, ValueError, TypeError, RecursionError):
            return (), {}

    def _value(self, job: EndedJob, spec: CallSpec | None) -> Any:
        for annotation in (Any,) if spec is None else (spec.returns, Any):
            try:
                return plain(self._serializer.decode_result(job.result, annotation))
            except Exception:  # noqa: BLE001, S112 - also users' code: serializers, validators
                continue
        return None


_NOTHING: Final = "[[],{}]"


def _on_failure(options: str) -> StoredCallback | None:
    try:
        return from_text(options).on_failure
    except SerializationError:  # damaged: nobody can tell what was to follow
        return None


def _params(text: str | None) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except (ValueError, TypeError, RecursionError):
        return {}
