"""Plans for branches: those that were chosen are released one by one, those without a decision are guarded.

A guarded follower has `Follows.GUARDED` instead of `Follows.DECIDED` from its release on, which is what the attempt
that runs it looks for. A retry of its parent takes that back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.domain.branches import PREDICATE_FAILED, BranchDecision, FailedBranch, PredicateError, TriggeredBranch
from windlass.domain.ended import DAMAGED, Ended
from windlass.domain.states import JobStatus, Move
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step


class BranchWrites:
    """What is to be written for the branches of jobs that end in one transaction, and what was."""

    def __init__(self) -> None:
        self._decisions: dict[str, BranchDecision] = {}
        self.undecided: list[str] = []
        """Parents whose conditions were never evaluated: a batch, or a job that has ended without an attempt."""
        self.fired: dict[str, tuple[TriggeredBranch, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._decisions or self.undecided)

    def add(self, parent: str, decision: BranchDecision) -> None:
        """Add what becomes of the branches of a job."""
        self._decisions[parent] = decision

    def release(self, dialect: Dialect) -> Plan[set[tuple[str, int]]]:
        """Release chosen and guarded followers; return their queues and priority levels."""
        guarded = [one.child_id for decision in self._decisions.values() for one in decision.guarded]
        if self.undecided:
            rows = yield Step("undecided_followers", {"ids": dialect.ids(self.undecided)})
            guarded += [job for (job,) in rows]
        if guarded:
            yield Step("guard_followers", {"ids": dialect.ids(guarded)})
        chosen = [one.child_id for decision in self._decisions.values() for one in decision.chosen]
        if not chosen and not guarded:
            return set()
        rows = yield Step("release_branches", {"ids": dialect.ids(sorted((*chosen, *guarded)))})
        released = {job for job, _, _ in rows}
        for parent, decision in self._decisions.items():
            fired = [one for one in decision.chosen if one.child_id in released]
            if fired:
                self.fired[parent] = tuple(TriggeredBranch(one.child_id, one.description) for one in fired)
        return {(queue, priority) for _, queue, priority in rows}

    def cancel(self, dialect: Dialect) -> Plan[list[UnreleasedJob]]:
        """Cancel branches whose predicate failed; return them."""
        failed = [(parent, one) for parent, decision in self._decisions.items() for one in decision.failed]
        if not failed:
            return []
        found = yield from _lock_failed(dialect, failed)
        yield from cancel_unreleased(dialect, found, {one.child_id: one.error for _, one in failed})
        return found


def release_guarded(dialect: Dialect, parents: Sequence[str]) -> Plan[set[tuple[str, int]]]:
    """Release the followers of parents with unevaluated conditions; return their queues and priority levels."""
    writes = BranchWrites()
    writes.undecided += parents
    return (yield from writes.release(dialect))


def _lock_failed(dialect: Dialect, failed: Sequence[tuple[str, FailedBranch]]) -> Plan[list[UnreleasedJob]]:
    causes = {one.child_id: parent for parent, one in failed}
    rows = yield Step("lock_unreleased", {"ids": dialect.ids(sorted(causes))})
    return [UnreleasedJob(job, parent, causes[job], PREDICATE_FAILED, *rest) for job, parent, *rest in rows]


def cancel_unreleased(
    dialect: Dialect, followers: Sequence[UnreleasedJob], errors: Mapping[str, PredicateError] | None = None
) -> Plan[None]:
    """Cancel followers that are locked and not released, and release their keys."""
    if not followers:
        return
    chosen = {"ids": dialect.ids([one.job_id for one in followers])}
    found = errors or {}
    rows = [(one.job_id, one.cause, one.reason, *(found.get(one.job_id) or (None, None))) for one in followers]
    yield Step("cancel_followers", {"rows": json_text(rows)})
    yield Step("finish_hot", chosen)
    yield Step("delete_live_keys", chosen)


def set_causes(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, str]]:
    """Record that guarded followers were canceled because of their parents; return the parent of each."""
    return dict((yield Step("cancel_by_parent", {"ids": dialect.ids(ids)})))


def recall(dialect: Dialect, ids: Sequence[str]) -> Plan[None]:
    """Take the release of guarded followers back that have not started: these parents are started over."""
    guarded = [job for (job,) in (yield Step("guarded_of_parents", {"ids": dialect.ids(ids)}))]
    rows = (yield Step("recall_guarded", {"ids": dialect.ids(guarded)})) if guarded else ()
    if rows:
        yield Step("unguard_followers", {"ids": dialect.ids([job for (job,) in rows])})


class GuardedFollower(NamedTuple):
    """A follower that was released without a decision."""

    job_id: str
    parent_id: str


def guarded_among(dialect: Dialect, ids: Sequence[str]) -> Plan[list[GuardedFollower]]:
    """Return which of these jobs are guarded."""
    rows = yield Step("guarded_followers", {"ids": dialect.ids(ids)}, autocommit=True)
    return [GuardedFollower(*row) for row in rows]


class UnreleasedJob(NamedTuple):
    """A follower that is not released, as `downstream` and `lock_unreleased` read it."""

    job_id: str
    parent_id: str
    cause: str
    reason: str
    status: str
    queue: str
    priority: int
    target: str
    correlation_id: str | None
    group_id: str | None

    @property
    def ended(self) -> Ended:
        """The follower as a canceled job."""
        return Ended(
            job_id=self.job_id,
            target=_text(self.target) or DAMAGED,
            queue=_text(self.queue) or DAMAGED,
            priority=self.priority,
            move=Move.CANCEL,
            left=JobStatus(self.status),
            correlation_id=_text(self.correlation_id),
            reason=self.reason,
            in_cascade=True,
        )


def _text(stored: object) -> str | None:
    """Return a stored text; None if it was damaged."""
    return stored if isinstance(stored, str) else None
