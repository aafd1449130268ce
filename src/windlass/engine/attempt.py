"""One attempt from its claim to its written outcome, and the ways it can end.

A single object per attempt goes through the whole engine: it waits for a slot, runs, gets its transition, and waits to
be written.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from windlass.context import JobContext
from windlass.domain.attempt_end import EndAttempt
from windlass.domain.branches import Judgement, Judgements, OpenGuard
from windlass.domain.circuit import ServiceCall
from windlass.domain.clock import monotonic
from windlass.domain.job import Claim, Payload
from windlass.domain.transition import Times, Transition
from windlass.engine.damage import check_payload, damage_of_claim, is_id, is_sound, repaired
from windlass.errors import SerializationError, SignalTimeoutError, WorkerLostError
from windlass.runtime.threads import Turn
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
    """The body was not entered: the target is denied here, or its stored arguments no longer fit."""

    error: BaseException
    reason: str


class NotKnownHere(NamedTuple):
    """The target, or a predicate, is not known on this node."""

    why: str
    predicates: tuple[str, ...] = ()
    """What a node must know besides the target, if it is a predicate that is missing."""


class NotChosen(NamedTuple):
    """The condition of a guarded follower does not hold: its body was not entered."""

    judgement: Judgement


class Snoozed(NamedTuple):
    """The body asked to be run later."""

    delay: float


class Deferred(NamedTuple):
    """The service it needs is not available: its body was not entered."""

    delay: float


class NotSignaled(NamedTuple):
    """The signal that it awaits did not come in time: its body was not entered."""

    error: SignalTimeoutError


class Directed(NamedTuple):
    """The body decided itself how its attempt ends."""

    end: EndAttempt


class Expired(NamedTuple):
    """It was claimed too late: its body was not entered."""


class Released(NamedTuple):
    """Released without a verdict: never started, or cut off by a drain."""


class Died(NamedTuple):
    """The process that ran the body is dead."""

    error: WorkerLostError


RETURNED_NOTHING = Returned(None)
RELEASED = Released()

Ending = (
    Returned
    | Raised
    | Refused
    | NotKnownHere
    | NotChosen
    | Snoozed
    | Deferred
    | NotSignaled
    | Directed
    | Expired
    | Released
    | Died
)


@dataclass(slots=True)
class Deadline:
    """The timeout of a running attempt, and when to act on it, on the loop's clock."""

    timeout: float
    ends_at: float
    next_check: float


@dataclass(slots=True)
class BodyThread:
    """The thread that a body runs on."""

    goes_on: bool = False
    """Whether the body may still run when its task has ended, because it was interrupted."""
    ended: bool = False
    """Whether the body has ended; the loop may not know it yet."""


@dataclass(slots=True, eq=False)
class Attempt:
    """A claimed job, from its arrival here to the commit of its outcome.

    Times are the store's: the time of the claim plus what this process has measured since, so that a local clock that
    is set back, or differs from the store's, has no effect.
    """

    claim: Claim
    payload: Payload | None
    """None as long as it is large and not read, so that a waiting claim takes little memory."""
    received: float
    """When the claim arrived, on this process's monotonic clock."""
    options: StoredOptions = DEFAULTS
    deadline: Deadline | None = None
    """None without a timeout, and before it has a slot."""
    started: float | None = None
    """When its body was entered, or prepared for its turn, on this process's monotonic clock."""
    context: JobContext | None = None
    task: asyncio.Task[None] | None = None
    """None before it starts, and once it has ended."""
    stop: Stop | None = None
    thread: BodyThread | None = None
    """None for a body on the loop or in a process."""
    turn: Turn | None = None
    """Its position in the line for a thread, if it was prepared before there was a slot."""
    damage: SerializationError | None = None
    """What is wrong with the stored row; its body is not entered then."""
    refusal: SerializationError | None = None
    """Why its arguments could not be completed; its body is not entered then."""
    guard: OpenGuard | None = None
    """The condition under which its body is entered; None for most: it was decided when the job was released."""
    judgements: Judgements | None = None
    """Whether the conditions of its branches hold, as far as they were asked; None: none was."""
    call: ServiceCall | None = None
    """How its call to the service of its circuit ended; None if it has none, or has not called."""
    cargo: object = None
    """What its body hands to the follow-ups of a feature; None for most."""
    transition: Transition | None = None
    """The verdict, once there is one: whatever the body still does is ignored."""

    @property
    def verdict(self) -> Transition:
        """The transition of an attempt that has one."""
        assert self.transition is not None
        return self.transition

    @property
    def timeout(self) -> float | None:
        """Seconds that its body may take; None for no limit."""
        return None if self.deadline is None else self.deadline.timeout

    @property
    def body_goes_on(self) -> bool:
        """Whether its body may still run when its task has ended."""
        return self.thread is not None and self.thread.goes_on

    @property
    def lingers(self) -> bool:
        """Whether its verdict was made while its body still ran."""
        return self.transition is not None and self.transition.lingers

    @property
    def over(self) -> bool:
        """Whether both its task and its body have ended."""
        return self.task is None and not self.body_goes_on

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self.claim.attempts + 1

    @property
    def holds_key(self) -> bool:
        """Whether its business key must be released when the job ends."""
        return self.payload is not None and self.payload.business_key is not None

    @property
    def correlation_id(self) -> str | None:
        """The id that its job shares with related jobs."""
        return None if self.payload is None else self.payload.correlation_id

    @property
    def not_signaled(self) -> NotSignaled | None:
        """How it ends if it awaits a signal that did not come in time; None: it may run."""
        wait = self.options.wait
        if wait is None or self.options.signal is not None:
            return None
        waited = "" if wait.timeout_us is None else f" within {wait.timeout_us / 1_000_000:g} s"
        return NotSignaled(SignalTimeoutError(f"the signal {wait.key!r} did not come{waited}"))

    @property
    def expired(self) -> bool:
        """Whether it is too late for it to start."""
        return self.claim.expires is not None and self.store_time(monotonic()) >= self.claim.expires

    @classmethod
    def of(cls, claim: Claim, payload: Payload | None, received: float) -> Attempt:
        """Return an attempt of a claim. A damaged row gets one too, which does not enter the body."""
        if not is_id(claim.job_id):
            payload = None  # nothing can be written about it: it is removed where payloads are loaded
        if is_sound(claim):
            return cls(claim, payload, received)
        return cls(repaired(claim), payload, received, damage=damage_of_claim(claim))

    def read_payload(self, payload: Payload) -> None:
        """Read the options that differ from the defaults, once, and check whether the rest is usable."""
        if self.damage is not None or self.options is not DEFAULTS:
            return
        try:
            check_payload(payload)
            if payload.options is not None:
                self.options = from_text(payload.options)
        except SerializationError as error:
            self.damage = error.with_traceback(None)  # it has only our own frames

    def store_time(self, moment: float) -> int:
        """Convert a moment of this process's monotonic clock to the store's clock."""
        return self.claim.picked_at + int((moment - self.received) * 1_000_000)

    def times(self) -> Times:
        """Return its times, ending now, and how long the job waited since it was due or created."""
        claim, payload, received = self.claim, self.payload, self.received
        picked_at = claim.picked_at
        ended = picked_at + int((monotonic() - received) * 1_000_000)
        started = self.started if self.turn is None else self.turn.began
        if started is None or payload is None or self.damage is not None:
            return Times(None, ended, None)
        began = picked_at + int((started - received) * 1_000_000)
        return Times(began, ended, max(0, began - max(payload.created_at, claim.due_at)))
