"""Dead letters of jobs and executions as values: envelopes, groups, alerts, and the first action for each reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

from windlass.domain.clock import from_micros
from windlass.domain.transition_keys import TransitionKey, read_transition_key

JOB: Final = "job"
EXECUTION: Final = "execution"
KINDS: Final = (JOB, EXECUTION)
"""What a dead letter may be of."""
TENANT: Final = "default"
PLATFORM: Final = "python"
PIPELINE: Final = "pipeline"
"""The resource type of executions; that of jobs is `job`."""


class Reason(NamedTuple):
    """Why a job or execution was not retried, and what to do about it first."""

    meaning: str
    first_action: str
    retryable: bool
    """Whether this kind of failure may go away by itself when the job is retried."""


REASONS: Final[Mapping[str, Reason]] = MappingProxyType(
    {
        "retry_exhausted": Reason(
            "it kept failing until its retries (possibly none) were used up",
            "Make sure that what it depends on works again, then re-drive in bounded batches.",
            True,
        ),
        "non_retryable": Reason(
            "its error forbids a retry (@do_not_retry, DoNotRetry), or the retry policy refused one",
            "Fix the data or the code that the error names before you re-drive.",
            False,
        ),
        "circuit_deferral_exhausted": Reason(
            "the service it needs was behind an open circuit for too long",
            "Find out why the circuit opened; once the service answers, close the circuit and re-drive.",
            True,
        ),
        "await_timeout": Reason(
            "its step was not completed from outside in time",
            "Check the system that should have completed it; re-drive to request it again.",
            True,
        ),
        "signal_timeout": Reason(
            "the signal it waited for did not come in time",
            "Check the sender of the signal; re-drive to wait for it again.",
            True,
        ),
        "worker_lost": Reason(
            "the process that ran it died too often",
            "Look for what kills workers (memory, crashes in C code) in the logs of its host; re-drive one first.",
            True,
        ),
        "poison_payload": Reason(
            "its stored arguments no longer fit the function, or the database refused to store its outcome",
            "Compare the arguments with the function; deploy a version that accepts them, or enqueue a new job.",
            False,
        ),
        "target_not_found": Reason(
            "no node has known its function for too long",
            "Deploy the function under its stored name and re-drive, or cancel jobs that are no longer needed.",
            False,
        ),
        "target_not_allowed": Reason(
            "its function exists, but the target policy does not allow it to run",
            "Register it with @app.job, or allow its module with allow=[…]; then re-drive.",
            False,
        ),
        "reject_limit": Reason(
            "more items of the execution were rejected than max_rejected allows",
            "Look at the rejects with `windlass reject groups`; fix the data or the rule, then re-drive.",
            False,
        ),
    }
)
"""Every reason that Windlass gives."""

UNKNOWN_REASON: Final = Reason(
    "a reason that this version does not know", "Read the error and the attempts before you re-drive.", True
)


def about(reason: str) -> Reason:
    """Return what a reason means; a newer version may have written one that this version does not know."""
    return REASONS.get(reason, UNKNOWN_REASON)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A job or execution that failed for good, from `app.dead_letters`: the envelope that was stored as it died.

    Errors are sanitised. `envelope()` gives the same under the names that other systems know.
    """

    job_id: UUID
    """Id of the job, or of the execution."""
    fingerprint: str
    """Equal for failures of the same target (of executions: pipeline and step), error class and shape of message."""
    tenant_id: str
    """Tenant of an execution; `default` for a job."""
    execution_id: str
    """The same id as text."""
    execution_key: str | None
    """The idempotency key of a job, the key of an execution."""
    transition_key: str
    """`jobId:0:attempt`; of an execution `executionId:stepIndex:attempt`, and `:item` after an expansion."""
    correlation_id: str | None
    resource_type: str
    """`job` or `pipeline`."""
    resource_name: str
    """The target of a job, the name of a pipeline."""
    transport: str
    """The kind of store."""
    platform: str
    terminal_status: str
    """`FAILED` for a job, `DLQ` for an execution."""
    created_at_epoch_ms: int
    """When it failed for good, by the store's clock."""
    terminal_reason: str
    error_code: str
    """The error's class."""
    error_message: str
    retryable: bool
    """Whether this kind of failure may go away by itself."""
    retries_observed: int
    """Retries of the job, or of the step that failed."""
    traceback: str | None
    """The end of the traceback."""
    host: str | None
    """The host on which it failed."""
    definition_hash: str | None
    """Hash of a pipeline's definition; None for a job."""

    @property
    def created_at(self) -> datetime:
        """When it failed for good, aware, in UTC, to the millisecond."""
        return from_micros(self.created_at_epoch_ms * 1000)

    @property
    def step(self) -> int | None:
        """Index of the step at which an execution failed; None for a job."""
        return None if (found := self._transition) is None else found.step

    @property
    def item(self) -> str | None:
        """Position of the item that failed, e.g. `3.0`; None for a job, and for an execution before an expansion."""
        return None if (found := self._transition) is None else found.item

    @property
    def _transition(self) -> TransitionKey | None:
        return read_transition_key(self.transition_key) if self.resource_type == PIPELINE else None

    @property
    def first_action(self) -> str:
        """What to do first about its reason."""
        return about(self.terminal_reason).first_action

    def envelope(self) -> dict[str, Any]:
        """Return the fields of the envelope in camel case: `tenantId`, `executionId`, `terminalReason` …"""
        own = ("job_id", "fingerprint")
        return {camel_case(item.name): getattr(self, item.name) for item in fields(self) if item.name not in own}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterGroup:
    """Dead letters of one fingerprint, from `app.dead_letters.groups()`."""

    fingerprint: str
    target: str
    """The target of jobs, the pipeline of executions."""
    error_class: str
    sample: str
    """The error of one of them."""
    count: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Jobs of a target, or executions of a pipeline, fail with one kind of error, from `app.alerts.find()`.

    Further ones within an hour are counted.
    """

    target: str
    """The target of jobs, the pipeline of executions."""
    error_hash: str
    """The fingerprint of its dead letters."""
    error_class: str
    sample: str
    """The error that raised it."""
    count: int
    first_job_id: UUID
    last_job_id: UUID
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Redrive:
    """Result of `app.dead_letters.redrive()`. After a dry run nothing was re-driven, and `ids` are those selected."""

    selected: int
    """Number of matching dead letters."""
    redriven: int
    ids: tuple[UUID, ...]
    """The jobs and executions that were re-driven."""
    skipped: Mapping[UUID, str] = field(default_factory=dict)
    """Jobs that stay dead letters because another job holds their business key, with the reason as text."""
    stopped: str = ""
    """Why it ended before its limit, or before all had ended, if too many of the re-driven jobs have failed again."""
    succeeded: int = 0
    """How many of the re-driven have succeeded, as of the last look: after every batch, and at the end."""
    failed_again: int = 0
    """How many of them are dead letters again."""
    unfinished: int = 0
    """How many of them had not ended then."""
    suppressed: int = 0
    """Hand-offs of publications that were suppressed meanwhile, by any execution: their subscribers had them."""
    saturation: float | None = None
    """Of those that are tried again: the mean share of their retries that is used up; 1: only last retries are left.

    None if none is, or if their limits are not known here: those of steps are where their pipeline is declared. Of the
    items of executions a sample counts.
    """


def camel_case(name: str) -> str:
    """Return the name of a field as an envelope writes it: `tenantId` for `tenant_id`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
