"""Steps that wait for answers from outside, as values: their identity, and what becomes of an answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from windlass.domain.item_paths import FIRST, parse_readable, readable

_INTERACTION: Final = re.compile(
    r"(?P<id>[0-9a-fA-F-]{36}):(?P<step>[0-9]{1,4})(?::(?P<item>[0-9]{1,15}(?:\.[0-9]{1,15}){0,30}))?(?:~(?P<round>[0-9]{1,4}))?"
)


class WaitStatus(StrEnum):
    """The state of one wait."""

    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    EXPIRED = "EXPIRED"
    CANCELED = "CANCELED"


class WaitKey(NamedTuple):
    """Identifies one round of one step's wait, of an item or of a single value."""

    execution_id: str
    step: int
    path: str
    """Path of the item; empty for a value that is no item."""
    round: int

    @property
    def interaction_id(self) -> str:
        """The effect key of the step; with `~2` for a second round."""
        text = ":".join(filter(None, (self.execution_id, str(self.step), readable(self.path))))
        return text if self.round == 1 else f"{text}~{self.round}"


def read_interaction_id(text: str) -> WaitKey | None:
    """Return the wait that an interaction id names; None if it is none."""
    found = _INTERACTION.fullmatch(text)
    if found is None:
        return None
    try:
        execution = str(UUID(found["id"]))
    except ValueError:
        return None
    path = FIRST if found["item"] is None else parse_readable(found["item"])
    return WaitKey(execution, int(found["step"]), path, int(found["round"] or 1))


class NewWait(NamedTuple):
    """A wait about to be stored."""

    execution_id: str
    step: int
    path: str
    round: int
    tenant: str
    pipeline: str
    correlation_id: str
    request: str
    deadline: int
    """Microseconds since 1970, by the store's clock."""
    stage: int
    """Stage of the item."""

    @property
    def key(self) -> WaitKey:
        """Its identity."""
        return WaitKey(*self[:4])


class LastWait(NamedTuple):
    """The last round of a wait, as a claim reads it."""

    path: str
    round: int
    status: str
    closed: int
    type: int | None
    answer: str | None
    deadline: int

    @property
    def next_round(self) -> int:
        """The round in which the step waits when its body runs now."""
        return self.round + 1 if self.closed else self.round


class Answer(NamedTuple):
    """An answer about to be stored."""

    key: WaitKey
    type: int
    """Number of its type in the definition."""
    value: str
    by: str
    deadline: int | None = None
    """Expiry of a signed token. None: the wait was addressed by its id, and must exist."""
    timeout_us: int = 0
    """How long its step waits."""


class KnownWait(NamedTuple):
    """What is stored about an answer's wait, read under the lock of the job that waits."""

    execution_id: str
    step: int
    path: str
    round: int
    execution_status: str
    stage: int
    cursor: int
    """Cursor of the item, or of the execution itself; -1: there is no such item."""
    status: str | None
    """None: it has not been stored yet."""
    closed: int | None
    answer: str | None
    type: int | None
    deadline: int | None
    before_closed: int
    """Whether the round before it is over; 1 for the first."""
    first_round: int
    """The first one since the execution started over."""
    now: int

    @property
    def key(self) -> WaitKey:
        """Its identity."""
        return WaitKey(*self[:4])


class AnswerFate(StrEnum):
    """What becomes of an answer."""

    STORED = "stored"
    """It completes a stored wait."""
    EARLY = "early"
    """It is kept for a wait that is not stored yet."""
    DUPLICATE = "duplicate"
    """Another one was first."""
    LATE = "late"
    """Its deadline has passed."""
    ENDED = "ended"
    """Its execution has ended, or has started over."""
    UNKNOWN = "unknown"
    """No such wait is known."""


ACCEPTED: Final = frozenset({AnswerFate.STORED, AnswerFate.EARLY, AnswerFate.DUPLICATE})


def fate_of(answer: Answer, stored: KnownWait | None, *, is_open: bool) -> AnswerFate:
    """Decide what becomes of an answer; `is_open`: whether its execution has not ended."""
    if stored is None:
        return AnswerFate.UNKNOWN
    if stored.status == WaitStatus.COMPLETED:
        return AnswerFate.DUPLICATE
    if stored.status == WaitStatus.EXPIRED:
        return AnswerFate.LATE
    if stored.status == WaitStatus.CANCELED or stored.closed or not is_open:
        return AnswerFate.ENDED
    deadlines = [one for one in (answer.deadline, stored.deadline) if one is not None]
    if deadlines and min(deadlines) <= stored.now:
        return AnswerFate.LATE
    if stored.status is not None:  # another status is damage
        return AnswerFate.STORED if stored.status == WaitStatus.WAITING else AnswerFate.UNKNOWN
    if stored.round < stored.first_round:
        return AnswerFate.ENDED
    signed = answer.deadline is not None
    comes = 0 <= stored.cursor <= answer.key.step if signed else stored.cursor == answer.key.step
    follows = stored.before_closed or stored.round == stored.first_round
    return AnswerFate.EARLY if comes and follows else AnswerFate.UNKNOWN


class AnsweredWait(NamedTuple):
    """What became of one answer."""

    fate: AnswerFate
    type: int | None = None
    value: str | None = None
    """Value of the first answer."""


def all_accepted(fates: Sequence[AnswerFate]) -> bool:
    """Return whether the answers of one call are stored: all of them, or none."""
    return all(fate in ACCEPTED for fate in fates)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWait:
    """A step that waits for an answer from outside, from `app.executions.pending()`."""

    interaction_id: str
    """Names it: the effect key of its step, with `~2` for a second round."""
    token: str = field(repr=False)
    """Allows its holder to answer, until the deadline. Empty if the authorizer refuses `complete` to the caller."""
    execution_id: UUID
    tenant: str
    pipeline: str
    step: str
    """Name of the step; its number if its definition is not declared here."""
    item: str | None
    """Position of the item, like `3.17`; None before an expansion."""
    correlation_id: str
    request: Any
    """What the body of the step has returned."""
    created_at: datetime
    deadline: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What `app.executions.complete` has done."""

    interaction_id: str
    execution_id: UUID
    duplicate: bool
    """Whether there was an answer before; that one holds, and this one was dropped."""
    answer: Any
    """The answer that holds."""
