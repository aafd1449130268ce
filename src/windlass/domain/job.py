"""A job's values as it passes through the engine: submitted, claimed, loaded, and as users see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from windlass.domain.dependencies import FlowPosition
from windlass.domain.progress import Progress
from windlass.domain.signal import SignalWait
from windlass.domain.states import JobStatus

JobId = Annotated[str, "job id"]
"""The id of a job, as text. Columns of this type have the database's id type."""


class NewJob(NamedTuple):
    """A row about to be stored. Either `due_at` is given, or `delay_us` is added to the store's own clock.

    A follower in a flow has neither: it has no due time before it is released. A field added here is stored, archived
    and read with the job: `windlass.stores.columns`.
    """

    id: JobId
    queue: str
    target: str
    priority: int
    args: str
    due_at: int | None = None
    delay_us: int | None = 0
    options: str | None = None
    tags: str | None = None
    """A JSON list: `windlass.domain.tags`."""
    params: str | None = None
    correlation_id: str | None = None
    idempotency_key: str | None = None
    business_key: str | None = None
    on_conflict: str = "raise"
    parent_id: JobId | None = None
    """The job that it follows."""
    lane: str | None = None
    """The limits it waits behind, besides those of its queue."""
    expires_at: int | None = None
    """When it expires unless it has started; alternatively `expires_us` is added to the store's clock."""
    expires_us: int | None = None
    batch_id: JobId | None = None
    """The batch that it is a child of."""
    position: FlowPosition | None = None
    """Its position in a flow; None for most jobs."""
    wait: SignalWait | None = None
    """The signal that it waits for; None for most jobs."""


class Claim(NamedTuple):
    """The fields that a claim returns: small, whatever the payload, so that a waiting claim costs little memory."""

    job_id: str
    fence: int
    queue: str
    target: str
    attempts: int
    crash_count: int
    priority: int
    due_at: int
    picked_at: int
    lane: str | None = None
    """The limits it waited behind, besides those of its queue."""
    holds: str | None = None
    """The gates of which it holds a permit, as a JSON list; None for most jobs."""
    expires: int | None = None
    """When it expires; None for most jobs, and for jobs that have started before."""


class Payload(NamedTuple):
    """The immutable part of a job, read when a slot takes a claimed job."""

    args: str
    options: str | None
    params: str | None
    tags: str | None
    correlation_id: str | None
    business_key: str | None
    created_at: int


class SubmittedJob(NamedTuple):
    """The result of submitting one job; `duplicate` is True when an earlier job is returned instead."""

    job_id: str
    duplicate: bool = False
    supersedes: str | None = None
    """The job that was canceled for it because it held the business key."""


class Conflict(NamedTuple):
    """A refused submission: `holder` has the business key (and is running, if the policy was to replace it)."""

    key: str
    holder: str
    of_follower: bool = False
    """Whether it is the idempotency key of a follower in a flow."""
    holder_kind: str = "job"
    """Whether the holder is a job or a schedule."""


class Outcome(NamedTuple):
    """The status of a job and, once it is terminal, its result or its error."""

    job_id: str
    status: JobStatus
    target: str
    result: str | None = None
    error: str | None = None
    error_class: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it is now. Times are aware UTC datetimes.

    `error` is the latest failure: it stays visible while the job waits for its retry, and success clears it.
    """

    id: UUID
    target: str
    queue: str
    status: JobStatus
    priority: int
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any
    error: str | None
    error_class: str | None
    reason: str | None
    attempts: int
    max_retries: int
    crash_count: int
    tags: tuple[str, ...]
    params: Mapping[str, Any]
    idempotency_key: str | None
    business_key: str | None
    node: str | None
    created_at: datetime
    due_at: datetime | None
    picked_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    wait_ms: int | None
    run_ms: int | None
    correlation_id: str | None
    parent_id: UUID | None
    batch_id: UUID | None = None
    """The batch that it is a child of."""
    superseded_by: UUID | None
    paused_from: JobStatus | None
    version: int
    """Grows with every change of state, over its whole life."""
    resource: str | None = None
    circuit: str | None = None
    progress: Progress | None = None
    """The progress reported by its running or last attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One row of a job's history.

    Outcomes: succeeded, retried, failed, lost, released, snoozed, deferred, passed_over, canceled, expired.
    """

    number: int
    node: str | None
    picked_at: datetime | None
    """When it was claimed."""
    started_at: datetime | None
    """When its body was entered. For a canceled attempt that was ended from outside: when it was claimed.

    For a lost one: None.
    """
    ended_at: datetime
    wait_ms: int | None
    run_ms: int | None
    outcome: str
    error_class: str | None
    error: str | None
    traceback: str | None
