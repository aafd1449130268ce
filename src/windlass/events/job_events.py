"""The events of jobs that ended, are retried, paused or resumed, and of circuits: functions of what was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Protocol
from uuid import UUID

from windlass.domain.circuit import CircuitChange
from windlass.domain.clock import from_micros
from windlass.domain.ended import Effects, Ended
from windlass.domain.execution import is_part
from windlass.domain.keys import error_fingerprint
from windlass.domain.states import Move
from windlass.domain.stored_schedule import SkippedTick
from windlass.domain.transition import NO_FAILURE
from windlass.events.types import (
    AlertRaised,
    CircuitClosed,
    CircuitOpened,
    Event,
    JobCanceled,
    JobCompleted,
    JobDeadLettered,
    JobEvent,
    JobFailed,
    JobRetrying,
    JobSignaled,
    JobTimedOut,
    ScheduleSkipped,
    WorkflowBranchTriggered,
)

JOB_EVENTS: Final = (
    *(JobCompleted, JobFailed, JobRetrying, JobDeadLettered, AlertRaised, JobTimedOut, JobCanceled),
    WorkflowBranchTriggered,
)
"""What `job_events` makes."""


def job_events(ended: Ended, effects: Effects, now: datetime) -> list[Event]:
    """Return the events of one job, in order; `now` is the time of a job that ended without an attempt.

    Jobs that run items of executions have none.
    """
    if is_part(ended.target):
        return []
    at = now if ended.times is None else from_micros(ended.times.ended_at)
    base: dict[str, Any] = {
        "job_id": UUID(ended.job_id),
        "target": ended.target,
        "queue": ended.queue,
        "correlation_id": ended.correlation_id,
        "at": at,
    }
    match ended.move:
        case Move.SUCCEED:
            wait_us = ended.times.wait_us if ended.times is not None else None
            completed = JobCompleted(
                **base, attempt=ended.number, wait_ms=(wait_us or 0) // 1000, run_ms=ended.run_ms or 0
            )
            return [completed, *_triggered(ended, base, effects)]
        case Move.CANCEL:
            return [JobCanceled(**base, reason=ended.reason or "")]
        case Move.FAIL | Move.GIVE_UP:
            failed = [*_failed(ended, base, will_retry=False), *_dead(ended, base, effects)]
            return [*failed, *_triggered(ended, base, effects)]
        case Move.REQUEUE | Move.PARK if ended.failure is not None:
            return [*_failed(ended, base, will_retry=True), _retrying(ended, base, effects.due)]
        case _:
            return []


class MovedJob(Protocol):
    """A job that was paused or resumed."""

    @property
    def job_id(self) -> str: ...  # noqa: D102 - as everywhere
    @property
    def target(self) -> str: ...  # noqa: D102 - as everywhere
    @property
    def queue(self) -> str: ...  # noqa: D102 - as everywhere
    @property
    def correlation_id(self) -> str | None: ...  # noqa: D102 - as everywhere


def move_events(kind: type[JobEvent], moved: Iterable[MovedJob], at: datetime) -> list[Event]:
    """Return one event of this kind for each job."""
    return [
        kind(job_id=UUID(job.job_id), target=job.target, queue=job.queue, correlation_id=job.correlation_id, at=at)
        for job in moved
    ]


class JobWithSignal(MovedJob, Protocol):
    """A job that got the signal it awaited."""

    @property
    def key(self) -> str: ...  # noqa: D102 - as everywhere


def signal_events(signaled: Iterable[JobWithSignal], outcome: str, by: str | None, at: datetime) -> list[Event]:
    """Return an event for each job that got a signal."""
    return [
        JobSignaled(
            job_id=UUID(job.job_id),
            target=job.target,
            queue=job.queue,
            correlation_id=job.correlation_id,
            at=at,
            key=job.key,
            outcome=outcome,
            by=by,
        )
        for job in signaled
    ]


def circuit_events(changes: Iterable[CircuitChange]) -> list[Event]:
    """Return an event for each circuit that opened or closed."""
    return [
        (CircuitOpened if change.opened else CircuitClosed)(at=from_micros(change.now), service=change.service)
        for change in changes
    ]


def skipped_events(skipped: Iterable[SkippedTick], now: datetime) -> list[Event]:
    """Return an event for ticks of schedules that did not fire."""
    return [
        ScheduleSkipped(at=now, key=one.key, tick=from_micros(one.tick), why=one.why, count=one.count)
        for one in skipped
    ]


def _failed(ended: Ended, base: Mapping[str, Any], *, will_retry: bool) -> list[Event]:
    failed = JobFailed(**base, **_error(ended), will_retry=will_retry)
    if (ended.failure or NO_FAILURE).error_class != "JobTimeoutError":
        return [failed]
    return [JobTimedOut(**base, timeout=timedelta(seconds=ended.timeout or 0)), failed]


def _dead(ended: Ended, base: Mapping[str, Any], effects: Effects) -> list[Event]:
    failure = ended.failure or NO_FAILURE
    if ended.job_id in effects.fingerprints:
        fingerprint = effects.fingerprints[ended.job_id]
        if fingerprint is None:
            return []
    else:
        fingerprint = error_fingerprint(ended.target, failure.error_class, failure.error)
    dead_lettered = JobDeadLettered(**base, **_error(ended), reason=ended.reason or "", fingerprint=fingerprint)
    if ended.job_id not in effects.alerts:
        return [dead_lettered]
    alert = AlertRaised(**base, error_hash=fingerprint, error_class=failure.error_class, sample=failure.error)
    return [dead_lettered, alert]


def _triggered(ended: Ended, base: Mapping[str, Any], effects: Effects) -> Iterable[Event]:
    return (
        WorkflowBranchTriggered(
            **base, parent_id=UUID(ended.job_id), child_id=UUID(one.child_id), description=one.description
        )
        for one in effects.branches.get(ended.job_id, ())
    )


def _retrying(ended: Ended, base: Mapping[str, Any], due: Mapping[str, int]) -> Event:
    ended_at = 0 if ended.times is None else ended.times.ended_at
    next_at = from_micros(due.get(ended.job_id, ended_at + ended.delay_us))
    return JobRetrying(**base, **_error(ended), next_at=next_at, delay=timedelta(microseconds=ended.delay_us))


def _error(ended: Ended) -> dict[str, Any]:
    failure = ended.failure or NO_FAILURE
    return {"error": failure.error, "error_class": failure.error_class, "attempt": ended.number}
