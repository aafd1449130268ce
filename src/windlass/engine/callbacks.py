"""Which callbacks an attempt's outcome sets off: a consequence of the completer."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.domain.job import EndedJob
from windlass.domain.states import JobStatus
from windlass.domain.transition import NO_FAILURE
from windlass.engine.attempt import Attempt
from windlass.failure.callbacks import Due
from windlass.submission.stored_options import DEFAULTS, StoredCallback


def callback_of(attempt: Attempt) -> StoredCallback | None:
    """What follows if the attempt's transition is won; None for nearly all."""
    options = attempt.options
    if options is DEFAULTS:
        return None
    status = attempt.verdict.status
    if status is JobStatus.SUCCEEDED:
        return options.on_success
    return options.on_failure if status is JobStatus.FAILED else None


def has_callback(attempt: Attempt) -> bool:
    """Whether anything follows."""
    return callback_of(attempt) is not None


def callbacks_due(attempts: Sequence[Attempt]) -> list[Due]:
    """What follows from transitions that were won."""
    return [Due(callback, _ended(attempt)) for attempt in attempts if (callback := callback_of(attempt)) is not None]


def new_work(attempts: Sequence[Attempt]) -> list[tuple[str, int]]:
    """Queues and priority levels that callbacks were stored in."""
    return sorted(
        {
            (callback.queue or attempt.claim.queue, callback.priority)
            for attempt in attempts
            if (callback := callback_of(attempt)) is not None
        }
    )


def _ended(attempt: Attempt) -> EndedJob:
    claim, transition, payload = attempt.claim, attempt.verdict, attempt.payload
    assert payload is not None, "callbacks come with the payload"
    failure, times = transition.failure or NO_FAILURE, transition.times
    return EndedJob(
        job_id=claim.job_id,
        target=claim.target,
        queue=claim.queue,
        status=transition.status,
        attempts=transition.attempts,
        args=payload.args,
        tags=payload.tags,
        params=payload.params,
        correlation_id=payload.correlation_id,
        result=transition.result,
        error=failure.error or None,
        error_class=failure.error_class or None,
        reason=transition.reason,
        run_ms=None if times.started_at is None else (times.ended_at - times.started_at) // 1000,
    )
