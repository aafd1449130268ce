"""One attempt while it is under way, and the ways it can end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from windlass.context import JobContext
from windlass.domain.clock import monotonic
from windlass.domain.job import Claim, Payload
from windlass.domain.transition import Times
from windlass.errors import SerializationError
from windlass.submission.stored_options import DEFAULTS, StoredOptions, from_text


class Stop(Enum):
    """Why an attempt is being ended from outside."""

    TIMEOUT = "timeout"
    DRAIN = "drain"
    CANCEL = "cancel"


class Returned(NamedTuple):
    """The body returned; `result` is its stored form."""

    result: str | None


class Raised(NamedTuple):
    """The body raised, or ran out of time (then `error` is a JobTimeoutError)."""

    error: BaseException


class Refused(NamedTuple):
    """The body was not entered: the target is denied here, or its stored arguments fit no more."""

    error: BaseException
    reason: str


class NotKnownHere(NamedTuple):
    """The target is not known on this node."""

    why: str


class Snoozed(NamedTuple):
    """The body asked to be run later."""

    delay: float


class Handed(NamedTuple):
    """Given back without a verdict: never started, or cut off by a drain."""


Ending = Returned | Raised | Refused | NotKnownHere | Snoozed | Handed


@dataclass(slots=True, eq=False)
class Attempt:
    """A claimed job with its payload, from slot to verdict.

    Times are the store's: the claim's own time plus what this process has measured since, so a clock that is set
    back, or differs from the store's, bends nothing.
    """

    claim: Claim
    payload: Payload
    received: float
    """When the claim arrived, on this process's monotonic clock."""
    options: StoredOptions
    timeout: float | None = None
    ends_at: float = 0.0
    """When its timeout is over, on the loop's clock."""
    next_look: float = float("inf")
    """When something is to be done about its timeout."""
    started_at: int | None = None
    context: JobContext | None = None
    task: asyncio.Task[None] | None = None
    stop: Stop | None = None
    settled: bool = False
    """A verdict was passed: whatever the body still does is not heard."""
    damage: SerializationError | None = None
    """What is wrong with the stored row, so that its body must not be entered."""

    @classmethod
    def of(cls, claim: Claim, payload: Payload, received: float) -> Attempt:
        """An attempt about to start."""
        try:
            return cls(claim, payload, received, from_text(payload.options))
        except SerializationError as error:
            return cls(claim, payload, received, DEFAULTS, damage=error)

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self.claim.attempts + 1

    def now(self) -> int:
        """The store's time."""
        return self.claim.picked_at + int((monotonic() - self.received) * 1_000_000)

    def times(self) -> Times:
        """When it started, that it ends now, and how long the job had waited.

        Since it was due, or since it was made.
        """
        if self.started_at is None:
            return Times(None, self.now(), None)
        waited = self.started_at - max(self.claim.due_at, self.payload.created_at)
        return Times(self.started_at, self.now(), max(waited, 0))


def unstarted_times(claim: Claim, received: float) -> Times:
    """For claims handed back before their payload was even read."""
    return Times(None, claim.picked_at + int((monotonic() - received) * 1_000_000), None)
