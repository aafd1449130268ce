"""Flows: how jobs depend on each other, and what the end of one does to the others. Pure.

There are two ways to depend. A job *follows* one parent: a job, or a group. A job *counts for* at most one group. A
follower is stored with its flow and has no due time until it is released. Conditions of followers: `branches`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from windlass.domain.branches import BranchDecision
from windlass.domain.states import JobStatus

MAX_FLOW_ROWS: Final = 100_000
"""Largest number of jobs in one flow."""


class Follows(IntEnum):
    """After which end of its parent a follower is released; the value is stored."""

    THEN = 1
    """Success: of the job, or of every member of the group."""
    SUCCESS = 2
    """Success of the job, as a branch."""
    FAILURE = 3
    """Failure; of a group: all members have ended, and not all succeeded."""
    ALWAYS = 4
    """Any end; of a group: all members have ended. A canceled job releases nothing."""
    DECIDED = 5
    """An end for which its predicate holds."""
    GUARDED = 6
    """The same, and the parent has ended without a decision: its own attempt calls the predicate first."""


ALL: Final = frozenset(Follows)
NONE: Final[frozenset[Follows]] = frozenset()


@lru_cache(maxsize=256)
def ways_of(kinds: frozenset[Follows]) -> tuple[int, ...]:
    """Return the stored values of ways to follow, in order."""
    return tuple(kind.value for kind in sorted(kinds))


class FlowPosition(NamedTuple):
    """The position of a job in its flow; stored in `windlass_flow`."""

    flow_id: str
    """The first job of the flow."""
    parent_id: str | None = None
    """The job or group that it follows; None: it starts at once."""
    follows: int | None = None
    """See `Follows`; None without a parent."""
    group_id: str | None = None
    """The group that it counts for."""
    delay_us: int | None = None
    """Delay of a follower, from its release until it is due."""
    due_at: int | None = None
    """Earliest due time of a follower."""
    answers: bool = False
    """Whether the handle of the flow is that of this job. Not stored."""
    batch: bool = False
    """Whether it is a batch, which has a group of its own id. Not stored."""


class EndedStep(NamedTuple):
    """A job of a flow that has ended."""

    job_id: str
    status: JobStatus
    leads: frozenset[Follows]
    """The ways in which other jobs follow it."""
    group_id: str | None
    cause: str | None = None
    """The job or group whose end canceled it; None: it ended by itself."""
    reason: str | None = None
    """Why it was canceled, if so."""
    branches: BranchDecision | None = None
    """What becomes of its branches; None: they are decided by its status and by guards."""


class FollowerDecision(NamedTuple):
    """What becomes of the followers of a parent."""

    release: frozenset[Follows] = NONE
    cancel: frozenset[Follows] = NONE
    guard: frozenset[Follows] = NONE
    """Released, too, each to be decided by its own attempt."""


UNDECIDED: Final = FollowerDecision()

_UNDECIDED_WAYS: Final = frozenset({Follows.DECIDED})
_OF_A_JOB: Final[Mapping[JobStatus, FollowerDecision]] = MappingProxyType(
    {
        JobStatus.SUCCEEDED: FollowerDecision(
            frozenset({Follows.THEN, Follows.SUCCESS, Follows.ALWAYS}), frozenset({Follows.FAILURE}), _UNDECIDED_WAYS
        ),
        JobStatus.FAILED: FollowerDecision(
            frozenset({Follows.FAILURE, Follows.ALWAYS}), frozenset({Follows.THEN, Follows.SUCCESS}), _UNDECIDED_WAYS
        ),
        JobStatus.CANCELED: FollowerDecision(NONE, ALL),
    }
)


def after_job(status: JobStatus) -> FollowerDecision:
    """Return what the end of a job does to its followers. A cancel releases none of them."""
    return _OF_A_JOB[status]


GROUP: Final = 1
BATCH: Final = 2
"""What members are counted for: a group of a flow, or the children of a batch. The value is stored."""


class GroupCounts(NamedTuple):
    """How many members of a group have ended, and how. A canceled member counts as failed."""

    total: int
    succeeded: int
    failed: int
    kind: int = GROUP
    loaded: int = 1
    """For a batch: whether all of its children are stored (`domain.batch.LoadState`)."""
    publish_progress: int = 0
    """For a batch: whether its progress is to be published now."""

    @property
    def complete(self) -> bool:
        """Whether all members are there and have ended."""
        return self.loaded == 1 and self.succeeded + self.failed >= self.total


class MemberChange(NamedTuple):
    """How the counts of a group change: positive for members that have ended, negative for those that were revived."""

    group_id: str
    succeeded: int
    failed: int


class CountedGroup(NamedTuple):
    """A group whose members were counted."""

    group_id: str
    counts: GroupCounts | None
    """None: another transaction counts it at this moment, and the change is noted to be counted after the commit."""


def after_members(counts: GroupCounts) -> FollowerDecision:
    """Return what the ends of members do to the followers of their group.

    The first failure cancels what needs all of them; the rest is decided when all have ended.
    """
    if not counts.complete:
        return FollowerDecision(NONE, frozenset({Follows.THEN})) if counts.failed else UNDECIDED
    return after_job(JobStatus.FAILED if counts.failed else JobStatus.SUCCEEDED)


UPSTREAM_FAILED: Final = "upstream_failed"
UPSTREAM_CANCELED: Final = "upstream_canceled"
NOT_CHOSEN: Final = "not_chosen"


BRANCHES: Final = frozenset({Follows.SUCCESS, Follows.FAILURE, Follows.DECIDED})
"""The ways in which branches follow a job."""


def reason_for(status: JobStatus, follows: Follows = Follows.THEN) -> str:
    """Return the reason of followers that are canceled because their parent ended so."""
    if status is JobStatus.SUCCEEDED or (status is JobStatus.FAILED and follows in BRANCHES):
        return NOT_CHOSEN
    return UPSTREAM_FAILED if status is JobStatus.FAILED else UPSTREAM_CANCELED


class Edge(NamedTuple):
    """One job depending on another."""

    job_id: str
    parent_id: str


def depth_first(jobs: Iterable[Edge]) -> list[str]:
    """Return jobs so that each comes before those that depend on it, branch by branch, in the order of their ids."""
    children: dict[str, list[str]] = {}
    own = set()
    for job in jobs:
        own.add(job.job_id)
        children.setdefault(job.parent_id, []).append(job.job_id)
    stack = sorted((job for parent, found in children.items() if parent not in own for job in found), reverse=True)
    ordered: list[str] = []
    while stack:
        job_id = stack.pop()
        ordered.append(job_id)
        stack.extend(sorted(children.get(job_id, ()), reverse=True))
    return ordered


def nested(values: Sequence[object], shape: Sequence[object] | None) -> list[object]:
    """Return the values of a group's members in the form of the group: nested groups as nested lists.

    `shape` has a number for so many members in a row, and a list for a nested group; None: there are none.
    """
    if shape is None:
        return list(values)
    rest = iter(values)
    return _nested(rest, shape)


def _nested(rest: Iterable[object], shape: Sequence[object]) -> list[object]:
    found: list[object] = []
    values = iter(rest)
    for part in shape:
        if isinstance(part, int):
            found += [next(values) for _ in range(part)]
        else:
            assert isinstance(part, Sequence)
            found.append(_nested(values, part))
    return found
