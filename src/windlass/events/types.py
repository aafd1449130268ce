"""The events, one frozen dataclass each. They are told after the commit, in order, to whoever listens with `app.on`.

All have `job_id, target, queue, correlation_id, at`; those of a node are about no job and have None there.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

__all__ = [
    "AlertRaised",
    "CircuitClosed",
    "CircuitOpened",
    "Event",
    "JobCanceled",
    "JobCompleted",
    "JobDeadLettered",
    "JobEvent",
    "JobFailed",
    "JobRetrying",
    "JobStarted",
    "JobTimedOut",
    "NodeLost",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Anything that has happened; listening to it means listening to everything."""

    job_id: UUID | None = None
    target: str | None = None
    queue: str | None = None
    correlation_id: str | None = None
    at: datetime
    """When it happened, aware, in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent(Event):
    """Anything that has happened to a job."""

    job_id: UUID
    target: str
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(JobEvent):
    """An attempt begins. The only event that is told before its attempt is settled."""

    attempt: int
    """Number of the attempt; the first is 1."""
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCompleted(JobEvent):
    """The job has SUCCEEDED."""

    attempt: int
    wait_ms: int
    """From when it was due until it started."""
    run_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed(JobEvent):
    """An attempt has failed; `will_retry` tells whether another follows. `error` is sanitised."""

    error: str
    error_class: str
    attempt: int
    will_retry: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRetrying(JobEvent):
    """The failed job is waiting for its next attempt. Follows its `JobFailed`."""

    error: str
    error_class: str
    attempt: int
    """The attempt that has failed."""
    next_at: datetime
    delay: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDeadLettered(JobEvent):
    """The job has FAILED for good. Follows its `JobFailed`."""

    error: str
    error_class: str
    attempt: int
    reason: str
    """Why nothing is left to try: `retry_exhausted`, `non_retryable`, `worker_lost` …"""
    fingerprint: str
    """Equal for failures of the same kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRaised(JobEvent):
    """Jobs of a target have begun to die of one kind of error. Follows the `JobDeadLettered` of the first of them.

    Further ones within the hour (`dead_letters.alert_window`) only add to the alert's count.
    """

    error_hash: str
    """The fingerprint of their dead letters."""
    error_class: str
    sample: str
    """The error of this job, sanitised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCanceled(JobEvent):
    """The job was CANCELED."""

    reason: str = "canceled"
    """`canceled` by somebody, `superseded` by another job, or `expired` before it could start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPaused(JobEvent):
    """The job is PAUSED until somebody resumes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResumed(JobEvent):
    """The paused job is back in the state it was paused from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTimedOut(JobEvent):
    """An attempt ran longer than its timeout; its `JobFailed` follows."""

    timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLost(Event):
    """A node stopped renewing its lease; its jobs, if it ran any, were taken back."""

    node: str
    recovered: int
    """How many jobs are waiting again; 0 of a node that ran nothing, or whose jobs were all given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitOpened(Event):
    """The circuit of a service lets no more jobs through."""

    service: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitClosed(Event):
    """The circuit of a service lets jobs through again."""

    service: str
