"""The events, one frozen dataclass each, published in order after the commit to `app.on` subscribers.

All have `job_id, target, queue, correlation_id, at`; events of a node concern no job and have None there.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from windlass.domain.batch import BatchProgress

__all__ = [
    "AlertRaised",
    "BatchCompleted",
    "BatchProgressed",
    "CircuitClosed",
    "CircuitOpened",
    "Event",
    "JobCanceled",
    "JobCompleted",
    "JobDeadLettered",
    "JobEvent",
    "JobFailed",
    "JobRetrying",
    "JobSignaled",
    "JobStarted",
    "JobTimedOut",
    "NodeLost",
    "ScheduleSkipped",
    "WorkflowBranchTriggered",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base class of all events; subscribing to it means subscribing to everything."""

    job_id: UUID | None = None
    target: str | None = None
    queue: str | None = None
    correlation_id: str | None = None
    at: datetime
    """When it happened, aware, in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent(Event):
    """Base class of events about a job."""

    job_id: UUID
    target: str
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(JobEvent):
    """An attempt begins. The only event that is published before its attempt is settled."""

    attempt: int
    """Number of the attempt; the first is 1."""
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCompleted(JobEvent):
    """The job has SUCCEEDED."""

    attempt: int
    wait_ms: int
    """Milliseconds from its due time to its start."""
    run_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed(JobEvent):
    """An attempt has failed; `will_retry` says whether another follows. `error` is sanitised."""

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
    """Why it is not retried: `retry_exhausted`, `non_retryable`, `worker_lost` …"""
    fingerprint: str
    """Equal for failures of the same kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRaised(JobEvent):
    """Jobs of a target have begun to fail with one kind of error. Follows the first one's `JobDeadLettered`.

    Further failures within the hour (`dead_letters.alert_window`) only add to the alert's count.
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
    """`canceled` by a caller, `superseded` by another job, `expired` before it could start.

    Of a follower: `upstream_failed`, `upstream_canceled`, `not_chosen` or `predicate_failed`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPaused(JobEvent):
    """The job is PAUSED until it is resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResumed(JobEvent):
    """The paused job is back in the state it was paused from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgressed(JobEvent):
    """Children of a batch have ended. At most once a second in the whole cluster, and always at the end."""

    batch_id: UUID
    progress: BatchProgress
    on_progress: str | None = None
    """The target of the batch's `on_progress`, which is called with the same progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCompleted(JobEvent):
    """All children of a batch have ended, and so has the batch. Once for each end: a retry of children ends it anew."""

    batch_id: UUID
    progress: BatchProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSignaled(JobEvent):
    """The signal that the job awaited has come: it runs now or, in a flow, when it is its turn."""

    key: str
    """The key that it waited for."""
    outcome: str
    """`approved` or `rejected`; `signaled` if only a payload was sent."""
    by: str | None = None
    """The principal that sent it; without one, user and host of the process that did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTimedOut(JobEvent):
    """An attempt ran longer than its timeout; its `JobFailed` follows."""

    timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowBranchTriggered(JobEvent):
    """A branch of the job fires: it is released. Follows the job's `JobCompleted` or `JobDeadLettered`.

    A branch whose job ended without an attempt is decided when it begins, and published then.
    """

    parent_id: UUID
    """The job whose outcome it follows; the same as `job_id`."""
    child_id: UUID
    """The first job of the branch."""
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLost(Event):
    """A node stopped renewing its lease; its jobs, if it had any, were recovered."""

    node: str
    recovered: int
    """Number of jobs that are PENDING again; 0 if the node ran none, or all of them were given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitOpened(Event):
    """The circuit of a service lets no more jobs through."""

    service: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitClosed(Event):
    """The circuit of a service lets jobs through again."""

    service: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSkipped(Event):
    """Ticks of a schedule were due and did not fire."""

    key: str
    tick: datetime
    """The first of them."""
    why: str
    """`missed`: no worker fired it in time. `overlap`: an earlier run had not ended. `queue_full`: 100 were waiting."""
    count: int = 1
    """How many they are; of missed ones of a cron expression 1,000 at most are counted."""
