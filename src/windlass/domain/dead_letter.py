"""Dead letters as values: the envelope of a job that failed for good, groups of them, alerts, and what each reason
asks for first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

from windlass.domain.clock import from_micros

TENANT: Final = "default"
PLATFORM: Final = "python"


class Reason(NamedTuple):
    """Why nothing was left to try, and what to do about it first."""

    meaning: str
    first_action: str
    retryable: bool
    """Whether the failure is of a kind that may be over by itself when the job is tried again."""


REASONS: Final[Mapping[str, Reason]] = MappingProxyType(
    {
        "retry_exhausted": Reason(
            "it kept failing until its retries were used up, of which it may have had none",
            "See that what it depends on works again, then re-drive bounded batches.",
            True,
        ),
        "non_retryable": Reason(
            "its error forbids a retry (@do_not_retry, DoNotRetry), or the retry policy refused one",
            "Mend the data or the code that the error names; only then re-drive.",
            False,
        ),
        "circuit_deferral_exhausted": Reason(
            "the service it needs was behind an open circuit for too long",
            "Find out why the circuit opened; once the service answers, close the circuit and re-drive.",
            True,
        ),
        "await_timeout": Reason(
            "the outside did not complete its step in time",
            "Ask whoever was to complete it; re-drive to ask again.",
            True,
        ),
        "signal_timeout": Reason(
            "the signal it waited for did not come in time",
            "Find out who was to send the signal; re-drive to wait for it again.",
            True,
        ),
        "worker_lost": Reason(
            "the process that ran it died too often",
            "Look for what kills workers (memory, crashes in C code) in the logs of its host; re-drive one first.",
            True,
        ),
        "poison_payload": Reason(
            "its stored arguments fit the function no more, or the database refused to store its outcome",
            "Compare the arguments with the function; deploy one that takes them, or enqueue the job anew.",
            False,
        ),
        "target_not_found": Reason(
            "no node has known its function for too long",
            "Deploy the function under its stored name, or cancel what nobody needs any more; then re-drive.",
            False,
        ),
        "target_not_allowed": Reason(
            "its function is there, but may not run",
            "Register it with @app.job, or admit its module with allow=[…]; then re-drive.",
            False,
        ),
    }
)
"""Every reason that Windlass gives."""

UNKNOWN_REASON: Final = Reason(
    "a reason that this version does not know", "Read the error and the attempts before you re-drive.", True
)


def about(reason: str) -> Reason:
    """What a reason means; a newer version may have written one that is not known here."""
    return REASONS.get(reason, UNKNOWN_REASON)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A job that failed for good, from `app.dead_letters`: the envelope that was stored as it died.

    Errors are sanitised. `envelope()` gives the same under the names that other systems know.
    """

    job_id: UUID
    fingerprint: str
    """Equal for failures of the same target, error class and shape of message."""
    tenant_id: str
    execution_id: str
    """The job's id."""
    execution_key: str | None
    """Its idempotency key."""
    transition_key: str
    """`jobId:0:attempt`."""
    correlation_id: str | None
    resource_type: str
    resource_name: str
    """Its target."""
    transport: str
    """The kind of store."""
    platform: str
    terminal_status: str
    created_at_epoch_ms: int
    """When it died, by the store's clock."""
    terminal_reason: str
    error_code: str
    """The error's class."""
    error_message: str
    retryable: bool
    """Whether the failure is of a kind that may be over by itself."""
    retries_observed: int
    traceback: str | None
    """Its end."""
    host: str | None
    """Where it died."""
    definition_hash: str | None
    """Of a pipeline's definition; None for a job."""

    @property
    def created_at(self) -> datetime:
        """When it died, aware, in UTC, to the millisecond."""
        return from_micros(self.created_at_epoch_ms * 1000)

    @property
    def first_action(self) -> str:
        """What to do first about its reason."""
        return about(self.terminal_reason).first_action

    def envelope(self) -> dict[str, Any]:
        """The fields of the envelope in camel case: `tenantId`, `executionId`, `terminalReason` …"""
        own = ("job_id", "fingerprint")
        return {_camel(item.name): getattr(self, item.name) for item in fields(self) if item.name not in own}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterGroup:
    """Dead letters of one fingerprint, from `app.dead_letters.groups()`."""

    fingerprint: str
    target: str
    error_class: str
    sample: str
    """The error of one of them."""
    count: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """That jobs of a target die of one kind of error, from `app.alerts.find()`. Within an hour it only counts on."""

    target: str
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
    """What `app.dead_letters.redrive()` did. After a dry run nothing was re-driven, and `ids` are those selected."""

    selected: int
    """Dead letters that fit."""
    redriven: int
    ids: tuple[UUID, ...]
    """The jobs that were started over."""
    skipped: Mapping[UUID, str] = field(default_factory=dict)
    """Jobs that stay dead letters because another job holds their business key, with the reason in words."""
    stopped: str = ""
    """Why it ended before its limit, if too much of what it re-drove has failed again."""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
