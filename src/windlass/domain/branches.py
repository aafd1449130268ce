"""Branches: jobs that follow an outcome of their parent under a condition. Pure.

A branch on success or failure is decided by the parent's status. One with a predicate is decided by the attempt that
ends the parent, after its body and before its outcome is written. A parent that ends without an attempt cannot call
predicates: its followers are released *guarded*. The attempt that runs a guarded follower calls the predicate first,
and ends CANCELED without entering the body if it does not hold. The guard of a follower is stored with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from windlass.domain.states import JobStatus

MAX_BRANCHES: Final = 100
"""Largest number of branches of one job: each is stored with its options."""
PREDICATE_FAILED: Final = "predicate_failed"
"""Reason of a branch whose predicate raised or took too long."""

BranchKind = Literal["success", "failure", "result", "custom"]

OF_OUTCOME: Final = "outcome"
"""The subject of a predicate on the `JobResult`."""
OF_VALUE: Final = "value"
"""The subject of a predicate on the value; after a failure there is none, and the branch is not chosen."""


class Branch(NamedTuple):
    """A branch of a job, stored with it: the order of a job's branches is that of their evaluation and release."""

    child_id: str
    """The first job of the branch."""
    kind: BranchKind
    """When it is chosen: after success, after failure, by a predicate on the value or on the `JobResult`."""
    predicate: str | None = None
    """The target of the predicate; None: there is none, or it is what remains of a choice."""
    choice: int | None = None
    """The choice that it belongs to, of which only the first that matches is chosen; None for most."""
    description: str = ""


class Guard(NamedTuple):
    """The condition of a follower, stored with it for the case that its parent ends without an attempt."""

    about: str
    """What its predicate is called with; each kind of subject has a source (`feature.GuardSource`)."""
    predicate: str | None = None
    """None: it holds if none of `unless` does."""
    unless: tuple[str, ...] = ()
    """Predicates that come before it in a choice: it holds only if none of them does."""
    description: str = ""

    @property
    def predicates(self) -> tuple[str, ...]:
        """All predicates, in the order in which they are called."""
        return self.unless if self.predicate is None else (*self.unless, self.predicate)


class OpenGuard(NamedTuple):
    """The guard of a follower that was released without a decision, and what it is about."""

    guard: Guard
    parent_id: str
    subject: object = None
    """What was read for it; None: its parent has not ended, because it was started over."""


class PredicateError(NamedTuple):
    """Why it is not known whether a condition holds: sanitised, as it is stored."""

    error: str
    error_class: str


class Judgement(NamedTuple):
    """Whether a condition holds."""

    holds: bool
    error: PredicateError | None = None
    """Its predicate raised or took too long."""


Judgements = Mapping[str, Judgement]
"""Judgements by the first job of the branch."""
NOT_JUDGED: Final[Judgements] = MappingProxyType({})

_NEXT: Final = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED})


def asked_after(branches: Sequence[Branch], status: JobStatus) -> list[Branch]:
    """Return the branches that this end of their job does not decide: their predicates are to be called, in order."""
    if status is JobStatus.SUCCEEDED:
        return [branch for branch in branches if branch.kind in {"result", "custom"}]
    return [branch for branch in branches if branch.kind == "custom"] if status is JobStatus.FAILED else []


class FailedBranch(NamedTuple):
    """A branch whose predicate failed."""

    child_id: str
    error: PredicateError


class BranchDecision(NamedTuple):
    """What becomes of the branches of a job; those that are in neither field are not chosen."""

    chosen: tuple[Branch, ...] = ()
    """Released, in order."""
    guarded: tuple[Branch, ...] = ()
    """Released, each to be decided by its own attempt."""
    failed: tuple[FailedBranch, ...] = ()
    """Canceled because of an error of their predicate."""


def decide(branches: Sequence[Branch], status: JobStatus, judgements: Judgements) -> BranchDecision:
    """Return what the end of a job does to its branches; unevaluated predicates are left to guards."""
    if status not in _NEXT:
        return BranchDecision()
    by_status = "success" if status is JobStatus.SUCCEEDED else "failure"
    asked = asked_after(branches, status)
    failed = (
        FailedBranch(one.child_id, error)
        for one in asked
        if (found := judgements.get(one.child_id)) is not None and (error := found.error) is not None
    )
    return BranchDecision(
        tuple(one for one in branches if one.kind == by_status or (one in asked and _holds(one, judgements))),
        tuple(one for one in asked if one.child_id not in judgements),
        tuple(failed),
    )


def _holds(branch: Branch, judgements: Judgements) -> bool:
    found = judgements.get(branch.child_id)
    return found is not None and found.holds


class TriggeredBranch(NamedTuple):
    """A branch that was released because its condition held."""

    child_id: str
    description: str
