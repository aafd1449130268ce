"""Executions of pipelines as values: submitted, claimed, written, and as users see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from windlass.domain.execution_items import ItemWrite, NewReject
from windlass.domain.transition import NO_FAILURE, Failure

PREFIX: Final = "pipeline/"
"""Begins the target of every job of a pipeline. A slash is in no module's name, so nothing is imported for it."""
ITEMS_SUFFIX: Final = "/items"
OPEN: Final = "OPEN"
"""Stored status of an execution that has not ended."""


def is_execution(target: str) -> bool:
    """Return whether a target is that of executions of a pipeline."""
    return target.startswith(PREFIX) and not target.endswith(ITEMS_SUFFIX)


def is_part(target: str) -> bool:
    """Return whether a target is that of jobs that run items of executions."""
    return target.startswith(PREFIX) and target.endswith(ITEMS_SUFFIX)


class ExecutionStatus(StrEnum):
    """The state of an execution; the value is what the command line and JSON show."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    WAITING_EXTERNAL = "WAITING_EXTERNAL"
    WAIT_RETRY = "WAIT_RETRY"
    PAUSED = "PAUSED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DLQ = "DLQ"
    CANCELED = "CANCELED"


ENDED: Final = frozenset(
    {ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED, ExecutionStatus.DLQ, ExecutionStatus.CANCELED}
)
DEAD: Final = frozenset({ExecutionStatus.FAILED, ExecutionStatus.DLQ})
"""Ended executions that can be re-driven."""


class NewExecution(NamedTuple):
    """An execution about to be stored, beside its job."""

    id: str
    tenant: str
    pipeline: str
    pipeline_version: str
    definition_hash: str
    key: str | None
    input_hash: str
    dlq: int
    source: str | None = None
    """What it was submitted by, if not by a caller: the id of a re-driven reject."""
    cursor: int = 0
    """Index of its first step."""
    value_version: int = 0
    """1: its first value is in the first row of its log."""
    awaits: int = 0
    """1: it has steps that wait for answers from outside."""


class KnownExecution(NamedTuple):
    """An execution that has the key of a new one."""

    id: str
    key: str
    input_hash: str


class ExecutionState(NamedTuple):
    """What a claim of an execution reads, and writes with every transition."""

    id: str
    tenant: str
    key: str | None
    status: str
    row_version: int
    cursor: int
    """Index of the step that runs or comes next."""
    attempt: int
    """Of that step, from 1."""
    value_version: int
    stage: int
    """Number of the present set of items."""
    streams: int
    """1: the present value is the items of the stage."""
    filled: int
    """1: the stage is complete, and parts were made for all items of the present segment."""
    emitted: int
    """Items that the present expansion has stored."""
    last_hash: str | None
    cut: str
    """Parts were made for items up to this path."""
    rejected: int
    paused: int
    failing: str | None
    """A `ItemFailure` as JSON."""
    first_round: int
    """The first round of its waits at steps up to `asked_to`: it was started over at an earlier step."""
    asked_to: int
    """Index of the last step that may have begun a wait before the execution was started over."""
    type: int | None
    """Number of the present value's type in the definition; None: it is the input."""
    value: str | None


class LogRow(NamedTuple):
    """What the log keeps of a transition."""

    kind: str
    step: int
    attempt: int
    run_us: int | None = None
    error_class: str | None = None
    error: str | None = None
    type: int | None = None
    value: str | None = None


class LastRejects(NamedTuple):
    """What the last step of an execution has rejected."""

    rejects: Sequence[NewReject]
    deliver: Callable[[Sequence[NewReject]], None]
    """Passes those that are new to the sink of the pipeline, after the commit."""


class FailedStep(NamedTuple):
    """What the claim of an execution that fails for good hands to the follow-ups of its end."""

    log: LogRow
    transition_key: str
    rejects: LastRejects | None = None
    """What it is over the limit of rejects with."""
    items: tuple[ItemWrite, ...] = ()
    """Items that have failed."""


class ItemFailure(NamedTuple):
    """The failure of an item that ends its execution; decided by the execution's own claim."""

    reason: str
    error: str
    error_class: str
    step: int
    path: str
    attempt: int
    traceback: str | None = None

    @property
    def failure(self) -> Failure:
        """Its error."""
        return Failure(self.error, self.error_class, self.traceback)


def item_failure_of(reason: str, failure: Failure | None, step: int, path: str, attempt: int) -> ItemFailure:
    """Return the failure of an item."""
    described = failure or NO_FAILURE
    return ItemFailure(reason, described.error, described.error_class, step, path, attempt, described.traceback)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """An execution as it is now, from `app.executions`. Times are aware UTC datetimes."""

    id: UUID
    tenant: str
    key: str | None
    pipeline: str
    pipeline_version: str
    definition_hash: str
    status: ExecutionStatus
    row_version: int
    """Grows by one with every transition."""
    cursor: int
    """Index of the step that runs or comes next."""
    step: str | None
    """Name of that step; None if its definition is not declared here, or if it has passed the last one."""
    attempt: int
    """Of that step: the one that runs or comes next, from 1."""
    lease_until: datetime | None
    """End of the lease of the node that runs it; None if it does not run."""
    due_at: datetime | None
    transition_key: str | None
    input: Any
    result: Any
    error_code: str | None
    error_message: str | None
    correlation_id: str | None
    rejected: int
    """Number of its items that were rejected."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionTransition:
    """One row of an execution's log."""

    version: int
    at: datetime
    kind: str
    step: int
    attempt: int
    node: str | None
    run_ms: float | None
    error_class: str | None
    error: str | None
    value: Any
