"""After the commit: events, in order, and who waits for these jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from windlass.domain.clock import from_micros
from windlass.domain.job import Outcome
from windlass.domain.keys import error_fingerprint
from windlass.domain.states import JobStatus
from windlass.domain.transition import NO_FAILURE
from windlass.engine.attempt import Attempt
from windlass.events.bus import EventBus
from windlass.events.types import (
    AlertRaised,
    Event,
    JobCanceled,
    JobCompleted,
    JobDeadLettered,
    JobFailed,
    JobRetrying,
    JobTimedOut,
)
from windlass.stores.claim_order import Head

LISTENED = (JobCompleted, JobFailed, JobRetrying, JobDeadLettered, AlertRaised, JobTimedOut, JobCanceled)


def events_of(batch: Sequence[Attempt], bus: EventBus) -> list[Event]:
    """The events of what was won, in order; none is built that nobody listens to."""
    if not any(bus.wanted(kind) for kind in LISTENED):
        return []
    return [event for attempt in batch for event in _events(attempt)]


def outcomes_of(batch: Sequence[Attempt]) -> list[Outcome]:
    """The terminal outcomes among what was won, for handles in this process."""
    return [_outcome(attempt) for attempt in batch if attempt.verdict.terminal]


def reopened(batch: Sequence[Attempt]) -> list[Attempt]:
    """Those whose job goes back to its queue: few, mostly."""
    return [attempt for attempt in batch if attempt.verdict.status is JobStatus.PENDING]


def heads_of(back: Sequence[Attempt]) -> list[Head]:
    """When jobs that go back to their queue are due again, for the local poller."""
    return [
        Head(
            attempt.claim.queue,
            attempt.claim.priority,
            attempt.verdict.times.ended_at + attempt.verdict.delay_us,
            attempt.claim.lane,
        )
        for attempt in back
        if attempt.verdict.lane is None
    ]


def lanes_of(batch: Sequence[Attempt]) -> set[tuple[str, str]]:
    """Lanes in which a place has come free."""
    return {(attempt.claim.queue, attempt.claim.lane) for attempt in batch if attempt.claim.lane is not None}


def handed_on(back: Sequence[Attempt]) -> list[tuple[str, int]]:
    """Where jobs were handed back that could run now: other nodes should hear of them."""
    released = [attempt.claim for attempt in back if attempt.verdict.outcome in ("released", "lost")]
    return sorted({(claim.queue, claim.priority) for claim in released})


def _outcome(attempt: Attempt) -> Outcome:
    transition = attempt.verdict
    failure = transition.failure or NO_FAILURE
    return Outcome(
        transition.job_id,
        transition.status,
        attempt.claim.target,
        transition.result,
        failure.error or None,
        failure.error_class or None,
        transition.reason,
    )


def _events(attempt: Attempt) -> list[Event]:
    claim, transition, times = attempt.claim, attempt.verdict, attempt.verdict.times
    base: dict[str, Any] = {
        "job_id": UUID(claim.job_id),
        "target": claim.target,
        "queue": claim.queue,
        "correlation_id": attempt.correlation_id,
        "at": from_micros(times.ended_at),
    }
    if transition.status is JobStatus.SUCCEEDED:
        run_ms = 0 if times.started_at is None else (times.ended_at - times.started_at) // 1000
        return [JobCompleted(**base, attempt=transition.number, wait_ms=(times.wait_us or 0) // 1000, run_ms=run_ms)]
    if transition.status is JobStatus.CANCELED:
        return [JobCanceled(**base, reason=transition.reason or "")]
    if transition.failure is None or (transition.crashes and not transition.terminal):
        return []
    return _failure_events(attempt, base)


def _failure_events(attempt: Attempt, base: dict[str, Any]) -> list[Event]:
    transition = attempt.verdict
    failure = transition.failure or NO_FAILURE
    error: dict[str, Any] = {"error": failure.error, "error_class": failure.error_class, "attempt": transition.number}
    events: list[Event] = []
    if failure.error_class == "JobTimeoutError":
        events.append(JobTimedOut(**base, timeout=timedelta(seconds=attempt.timeout or 0)))
    events.append(JobFailed(**base, **error, will_retry=not transition.terminal))
    if transition.terminal:
        fingerprint = error_fingerprint(attempt.claim.target, failure.error_class, failure.error)
        events.append(JobDeadLettered(**base, **error, reason=transition.reason or "", fingerprint=fingerprint))
        if attempt.raised_alert:
            alert = {**base, "error_hash": fingerprint, "error_class": failure.error_class, "sample": failure.error}
            events.append(AlertRaised(**alert))
    else:
        due = attempt.due_again or transition.times.ended_at + transition.delay_us
        delay = timedelta(microseconds=transition.delay_us)
        events.append(JobRetrying(**base, **error, next_at=from_micros(due), delay=delay))
    return events
