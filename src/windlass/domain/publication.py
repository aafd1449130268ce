"""Publications: items that executions pass on to subscribers, as values that are stored, counted and shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

FIRST_DELAY_US: Final = 1_000_000
LONGEST_DELAY_US: Final = 300_000_000
LONGEST_REASON: Final = 500

PIPELINE: Final = "pipeline"
REMOTE: Final = "remote"
"""The kinds of subscribers: a pipeline in this database, or a destination outside of it."""


class HandoffStatus(StrEnum):
    """The state of a hand-off."""

    WAITING = "WAITING"
    """In the backlog: its subscriber is paused, full, not running anywhere, or has refused it until its next try."""
    ADMITTED = "ADMITTED"
    """The subscriber has it."""
    REJECTED = "REJECTED"
    """It is not tried again by itself: a destination outside refused it for good, its key was used with another
    payload, or it has no key."""


class SubscriptionRow(NamedTuple):
    """A receiver of the items of a publication."""

    publication: str
    subscriber: str
    kind: str
    max_in_flight: int | None = None
    """Number of open executions at which the subscriber admits no more; None: no limit."""
    paused: bool = False


class FailedHandoff(NamedTuple):
    """A try that has failed, for the log."""

    publication: str
    subscriber: str
    tenant: str
    key: str
    reason: str
    final: bool
    """Whether it is not tried again."""


def retry_delay_us(attempts: int) -> int:
    """Return the microseconds until the next try after so many failed ones: 1 s, 2 s, up to 5 minutes.

    Example: `retry_delay_us(1) == 1_000_000`
    """
    return int(min(LONGEST_DELAY_US, FIRST_DELAY_US << min(attempts - 1, 30)))


def short_reason(text: str) -> str:
    """Return a reason as it is stored: one line, not too long."""
    line = " ".join(text.replace("\0", " ").encode(errors="replace").decode().split())
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """One item on its way to one subscriber, from `app.publications.list()`. Times are aware UTC datetimes."""

    id: UUID
    publication: str
    subscriber: str
    tenant: str
    key: str
    """Unique for a publication, subscriber and tenant: what makes a repeat known."""
    source_id: UUID | None
    """The execution that published it; None: it came from outside."""
    item: str
    """Position of the item among those of that execution, e.g. `3.17`."""
    correlation_id: str
    status: HandoffStatus
    attempts: int
    """Number of tries that have failed."""
    due_at: datetime | None
    """When it is tried next; None if it is settled."""
    reason: str | None
    """Why it was rejected, or why its last try has failed."""
    execution_id: UUID | None
    """The execution that it was admitted as."""
    created_at: datetime
    settled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffCounts:
    """What was counted of the hand-offs of a subscription in one hour."""

    admitted: int = 0
    suppressed: int = 0
    """Repeats of a key with the same payload, which were dropped."""
    rejected: int = 0
    """Repeats of a key with another payload, and items without a key."""
    failed: int = 0
    """Tries that have failed."""
    latency_ms: float | None = None
    """Mean time from publication to admission; None if nothing was admitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationBacklog:
    """One subscription of a publication and what waits for it, from `app.publications.backlog()`."""

    publication: str
    subscriber: str
    kind: str
    """`pipeline`, `remote`, or empty if nothing has subscribed since."""
    paused: bool
    max_in_flight: int | None
    waiting: int
    """Number of hand-offs that wait, counted up to 10,000."""
    bounded: bool
    """Whether counting stopped before all were seen."""
    hour_ago: int
    """How many waited an hour ago."""
    failing: int
    """Waiting hand-offs whose last attempt has failed."""
    lag: float
    """Seconds for which the oldest of them has waited; 0 if none does."""
    last_hour: HandoffCounts
    hour_before: HandoffCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedItem:
    """What became of an item that came from outside, from `app.publications.admit()`."""

    duplicate: bool
    """Whether all subscribers had it before."""
    executions: tuple[UUID, ...]
    """The executions that it was admitted as, also those of its first time."""
    waiting: int
    """Number of subscribers in whose backlog it was put; 0 for a repeat, also if it still waits."""
