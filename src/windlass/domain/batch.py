"""Batches: their progress, and what their end releases. Pure.

A batch is a job that runs nothing, and a group of children that are counted as members of groups are. It ends when all
children are stored and have ended.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal, NamedTuple

from windlass.domain.dependencies import NOT_CHOSEN, UPSTREAM_FAILED, Follows, GroupCounts
from windlass.domain.states import JobStatus

BATCH_TARGET: Final = "windlass:batch"
"""The target of the job that a batch is; nothing runs it."""
DEFAULT_CHUNK: Final = 500
"""Number of children that one transaction stores."""
OF_BATCH: Final = "batch"
"""The subject of a predicate of `when_batch`: the progress (`domain.branches.Guard.about`)."""
FIRST_CONDITION: Final = 10
"""How followers with a condition of their own follow a batch: this, plus the index of the condition."""


class LoadState(IntEnum):
    """How far the children of a batch are stored; the value is stored."""

    OPEN = 0
    """Children are still added."""
    DONE = 1
    REVIVING = 2
    """Failed children are started over, in several transactions. The batch does not end before the last of them."""


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How many children of a batch have ended, from `progress()` of its handle, `on_progress` and events."""

    total: int
    """Number of children stored so far; grows while the batch is loaded."""
    completed: int
    """Children that have SUCCEEDED."""
    failed: int
    """Children that ended otherwise: FAILED or CANCELED."""
    percent: float
    """Share of the stored children that have ended, from 0 to 100."""
    success_rate: float
    """Share of the ended children that have succeeded, from 0 to 1; 1 before the first end."""
    complete: bool
    """Whether all children are stored and have ended."""

    @classmethod
    def of(cls, counts: GroupCounts) -> BatchProgress:
        """Return the progress of a batch with these counts."""
        ended = counts.succeeded + counts.failed
        percent = 100 * ended / counts.total if counts.total else 100.0 if counts.loaded else 0.0
        rate = counts.succeeded / ended if ended else 1.0
        return cls(counts.total, counts.succeeded, counts.failed, percent, rate, counts.complete)


ConditionKind = Literal["rate", "failures"]


class BatchCondition(NamedTuple):
    """A condition on the counts of a batch that has ended."""

    kind: ConditionKind
    bound: float
    """At least this success rate, or so many failed children."""

    def holds(self, counts: GroupCounts) -> bool:
        """Return whether a batch that ended with these counts meets it. An empty batch has a success rate of 1."""
        if self.kind == "failures":
            return counts.failed >= self.bound
        # Not succeeded / total >= bound: 0.95 of 100 would fail by a rounding error.
        return counts.succeeded >= self.bound * counts.total - 1e-9 * counts.total


NEVER: Final = BatchCondition("failures", math.inf)
"""A condition that was lost: it does not hold."""


class BatchRules(NamedTuple):
    """What is stored of a batch in its options."""

    conditions: tuple[BatchCondition, ...] = ()
    on_progress: str | None = None
    """The function that is called with its progress."""
    guards: bool = False
    """Whether followers have predicates (`when_batch`), which their own attempts call."""


NO_RULES: Final = BatchRules()


class BatchDecision(NamedTuple):
    """What the end of a batch does to its followers, by how they follow it."""

    status: JobStatus
    release: tuple[int, ...]
    cancel: tuple[tuple[int, str], ...]
    """Followers to cancel, each with the reason."""
    guards: bool = False
    """Whether there are followers to release that call their predicates themselves."""


def after_batch(counts: GroupCounts, rules: BatchRules) -> BatchDecision:
    """Return the end of a batch, and what becomes of its followers.

    What needs its success is canceled by its failure, and revived if a child is started over; conditions that do not
    hold are not chosen.
    """
    succeeded = counts.failed == 0
    met, unmet = (Follows.THEN, Follows.FAILURE) if succeeded else (Follows.FAILURE, Follows.THEN)
    release, cancel = [met.value], [(unmet.value, NOT_CHOSEN if succeeded else UPSTREAM_FAILED)]
    for number, condition in enumerate(rules.conditions, FIRST_CONDITION):
        if condition.holds(counts):
            release.append(number)
        else:
            cancel.append((number, NOT_CHOSEN))
    status = JobStatus.SUCCEEDED if succeeded else JobStatus.FAILED
    return BatchDecision(status, tuple(release), tuple(cancel), rules.guards)


def ways_to_follow(conditions: Sequence[BatchCondition]) -> tuple[int, ...]:
    """Return every way in which jobs may follow a batch with these conditions."""
    return (*(kind.value for kind in Follows), *range(FIRST_CONDITION, FIRST_CONDITION + len(conditions)))


class BatchReport(NamedTuple):
    """The progress of a batch to be published after the commit that counted it."""

    batch_id: str
    queue: str
    correlation_id: str | None
    on_progress: str | None
    progress: BatchProgress
    ended: JobStatus | None = None
    """How it ended in that transaction, if so."""
    result: str | None = None


class BatchState(NamedTuple):
    """A batch as its loader and its handle see it."""

    batch_id: str
    counts: GroupCounts
    status: JobStatus
    loader: str | None
    """The process that stored the last children."""
    stored_at: int
    """When that was."""
