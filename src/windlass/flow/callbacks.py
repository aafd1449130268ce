"""Callbacks: `on_success` and `on_failure` as jobs, stored by the transaction that writes the outcome.

Either both are committed or neither is: a crash loses no callback, and none runs for an outcome that did not happen.
Nothing here may stop an outcome from being written, so values that cannot be read or encoded are left out, and the
callback is stored anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from windlass import loggers
from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.identity import new_job_ids
from windlass.domain.job import NewJob, Payload
from windlass.domain.states import Move
from windlass.domain.tags import tags_text
from windlass.errors import JobFailedError, SerializationError
from windlass.feature import Feature
from windlass.flow.job_results import JobResults
from windlass.spi import Serializer
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp, with_payloads
from windlass.stores.plan import Plan
from windlass.stores.plans import jobs
from windlass.submission.by_name import ANY_CALL
from windlass.submission.codec import NO_LIMIT
from windlass.submission.registry import Registry
from windlass.submission.stored_options import StoredCallback, from_text
from windlass.submission.templates import Mark, filled

logger = loggers.logger("windlass.callbacks")


def feature(registry: Registry, serializer: Serializer, known_queues: Collection[str]) -> Feature:
    """Return the callbacks of an application and its nodes."""
    callbacks = Callbacks(registry, serializer, known_queues)
    return Feature("callbacks", (FollowUp(frozenset(_NAMES), has_callback, callbacks.follow),))


_NAMES: Final = {Move.SUCCEED: '"on_success"', Move.FAIL: '"on_failure"', Move.GIVE_UP: '"on_failure"'}
"""The option of the callback that follows a move."""


def has_callback(ended: Ended) -> bool:
    """Return whether a callback may follow, as far as known without reading the options."""
    if ended.payload is None:
        return True
    options = ended.payload.options
    return isinstance(options, str) and _NAMES[ended.move] in options


def callback_of(ended: Ended) -> StoredCallback | None:
    """Return the callback that follows; None for most jobs."""
    if ended.payload is None or ended.payload.options is None:
        return None
    try:
        options = from_text(ended.payload.options)
    except SerializationError:  # damaged: the callback is unknown
        return None
    return options.on_success if ended.move is Move.SUCCEED else options.on_failure


class Due(NamedTuple):
    """A callback and the job it follows."""

    callback: StoredCallback
    job: Ended
    payload: Payload


class Callbacks:
    """The follow-up that turns outcomes into callback jobs."""

    def __init__(self, registry: Registry, serializer: Serializer, known_queues: Collection[str]) -> None:
        self._known_queues = known_queues
        self._results = JobResults(registry, serializer)
        self._serializer = serializer

    def follow(self, dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
        """Store the callbacks of ended jobs, in the transaction in which they end."""
        loaded = yield from with_payloads(dialect, ended)
        due = [
            Due(callback, job, job.payload)
            for job in loaded
            if (callback := callback_of(job)) is not None and job.payload is not None
        ]
        if not due:
            return NO_EFFECTS
        rows = [self._row(job_id, one) for job_id, one in zip(new_job_ids(len(due)), due, strict=True)]
        own_queues = {one.callback.queue for one in due if one.callback.queue is not None}
        yield from jobs.follow(dialect, rows, sorted(own_queues.difference(self._known_queues)))
        return Effects(work=frozenset((row.queue, row.priority) for row in rows))

    def _row(self, job_id: str, due: Due) -> NewJob:
        callback, job, payload = due
        return NewJob(
            id=job_id,
            queue=callback.queue or job.queue,
            target=callback.target,
            priority=callback.priority,
            args=self._arguments(due),
            due_at=callback.due_at,
            delay_us=callback.delay_us,
            options=callback.options,
            tags=tags_text(callback.tags),
            params=callback.params,
            correlation_id=callback.correlation_id or payload.correlation_id or job.job_id,
            parent_id=job.job_id,
            lane=callback.lane,
            expires_at=callback.expires_at,
            expires_us=callback.expires_us,
        )

    # ------------------------------------------------------------------ arguments

    def _arguments(self, due: Due) -> str:
        """Return the encoded arguments of a callback.

        The callback's function need not be known here: its arguments are encoded without its signature, and decoded by
        it.
        """
        callback, job, payload = due
        result = self._results.of(job, payload)
        error = JobFailedError(result.job_id, job.reason or "", result.error or "", result.error_class or "")
        values = {Mark.VALUE: result.value, Mark.OUTCOME: result, Mark.ERROR: error, Mark.ERROR_TEXT: result.error}
        try:
            args, kwargs = filled(*callback.args, callback.marks, callback.paths, values)
            return self._serializer.encode_arguments(ANY_CALL, args, kwargs, NO_LIMIT)
        except Exception as refused:  # noqa: BLE001 - a serializer of the user's
            logger.error(
                "the callback %s of job %s: its arguments could not be written (%s); it runs without them and fails",
                callback.target,
                job.job_id,
                type(refused).__name__,
            )
            return _NOTHING


_NOTHING: Final = "[[],{}]"
