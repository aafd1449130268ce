"""A job that has ended, or was revived, and what else changed with it.

Plans that end or revive jobs pass their `Ended` values to `stores.ending.end`, in their own transaction. What the
follow-ups of features wrote there is returned as `Effects`, which are published after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from windlass.domain.batch import BatchReport
from windlass.domain.branches import NOT_JUDGED, Judgements, TriggeredBranch
from windlass.domain.circuit import CircuitChange, ServiceCall
from windlass.domain.job import Outcome, Payload
from windlass.domain.states import ENTERED, JobStatus, Move
from windlass.domain.stored_schedule import SkippedTick
from windlass.domain.transition import NO_FAILURE, Failure, Times

DAMAGED: Final = "(damaged)"
"""Shown in place of a stored value that cannot be read."""


class Ended(NamedTuple):
    """A job whose state was just changed by `move`. Unknown fields have their defaults."""

    job_id: str
    target: str
    queue: str
    priority: int
    move: Move
    left: JobStatus = JobStatus.RUNNING
    """The state it was in before."""
    correlation_id: str | None = None
    outcome: str = ""
    """Outcome of its last attempt, if the attempt ended with it."""
    number: int = 0
    """Number of its last attempt."""
    attempts: int = 0
    """Number of attempts that counted."""
    reason: str | None = None
    failure: Failure | None = None
    result: str | None = None
    times: Times | None = None
    """Times of its last attempt; None: it ended without one, at the time of its commit."""
    delay_us: int = 0
    timeout: float | None = None
    node: str | None = None
    """The node that lost its attempt; None: it ended here, or without an attempt."""
    lane: str | None = None
    call: ServiceCall | None = None
    """The ended call to the service of its circuit; None for most jobs."""
    payload: Payload | None = None
    """None: it was not read. `stores.ending.with_payloads` reads it where a follow-up needs it."""
    in_flow: bool | None = None
    """Whether it is a job of a flow; None: as its payload states."""
    in_cascade: bool = False
    """Whether a follow-up canceled it because another job ended, and has written what its own feature writes for it."""
    judgements: Judgements = NOT_JUDGED
    """Whether the conditions of its branches hold, as far as they were evaluated."""
    cargo: object = None
    """What the body of a feature's job hands to the feature's follow-ups."""
    fence: int | None = None
    """Fence of its last claim; None: it ended without one."""

    @property
    def status(self) -> JobStatus:
        """The state it is in now."""
        return ENTERED[self.move]

    @property
    def run_ms(self) -> int | None:
        """Milliseconds that its body ran; None if it was not entered."""
        times = self.times
        if times is None or times.started_at is None:
            return None
        return (times.ended_at - times.started_at) // 1000

    @property
    def as_outcome(self) -> Outcome:
        """The outcome for handles that wait for it."""
        failure = self.failure or NO_FAILURE
        error, error_class = failure.error or None, failure.error_class or None
        return Outcome(self.job_id, self.status, self.target, self.result, error, error_class, self.reason)


class Unfinished(NamedTuple):
    """Writes that belong to the end of jobs and are carried out after its commit, by `stores.plans.flows.carry_on`.

    They are stored: if this process dies, the sweeper carries them out.
    """

    groups: frozenset[str] = frozenset()
    """Groups whose counts another transaction held."""
    operations: frozenset[str] = frozenset()
    """Cascades and releases of many rows."""

    def __bool__(self) -> bool:
        return bool(self.groups or self.operations)

    def __or__(self, other: Unfinished) -> Unfinished:
        """Return both."""
        return Unfinished(self.groups | other.groups, self.operations | other.operations)


NOTHING_UNFINISHED = Unfinished()

_NO_TIMES: Mapping[str, int] = MappingProxyType({})
_NO_FINGERPRINTS: Mapping[str, str | None] = MappingProxyType({})
_NO_BRANCHES: Mapping[str, tuple[TriggeredBranch, ...]] = MappingProxyType({})


class Effects(NamedTuple):
    """What follow-ups changed in addition to the jobs themselves."""

    work: frozenset[tuple[str, int]] = frozenset()
    """Queues and priority levels that have new work."""
    alerts: frozenset[str] = frozenset()
    """Jobs whose dead letters raised an alert."""
    circuits: tuple[CircuitChange, ...] = ()
    """Circuits that opened or closed."""
    due: Mapping[str, int] = _NO_TIMES
    """Due times, by the store's clock, of jobs that wait for their next attempt."""
    canceled: tuple[Ended, ...] = ()
    """Followers that were canceled because of it, depth first."""
    unfinished: Unfinished = NOTHING_UNFINISHED
    """Work that remains for separate transactions."""
    skipped: tuple[SkippedTick, ...] = ()
    """Ticks of schedules that were due and did not fire."""
    branches: Mapping[str, tuple[TriggeredBranch, ...]] = _NO_BRANCHES
    """Branches that were released because their conditions held, in order, by the job whose branches they are."""
    batches: tuple[BatchReport, ...] = ()
    """Batches whose progress is to be published."""
    fingerprints: Mapping[str, str | None] = _NO_FINGERPRINTS
    """Fingerprints of the dead letters of executions; None: it failed without one. That of a job follows from it."""
    calls: tuple[Callable[[], None], ...] = ()
    """What features do after the commit; they must not block, and must not raise."""

    def __or__(self, other: Effects) -> Effects:
        """Return the effects of both."""
        if other is NO_EFFECTS:
            return self
        return Effects(
            self.work | other.work,
            self.alerts | other.alerts,
            self.circuits + other.circuits,
            {**self.due, **other.due},
            self.canceled + other.canceled,
            self.unfinished | other.unfinished,
            self.skipped + other.skipped,
            {**self.branches, **other.branches},
            self.batches + other.batches,
            {**self.fingerprints, **other.fingerprints},
            calls=self.calls + other.calls,
        )


NO_EFFECTS = Effects()
