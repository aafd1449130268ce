"""Plans for flows: the end of a job releases, cancels and counts what depends on it, in the transaction that ends it.

A wave walks along the followers of what has ended; members of groups among the canceled ones are counted, which may end
groups, and so on. More rows than one transaction should write are left to an operation, which is stored by the same
transaction and carried out after its commit. Followers that are not released cannot run, so late is safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from windlass.domain.batch import BatchDecision, BatchReport, BatchRules, after_batch, ways_to_follow
from windlass.domain.dependencies import (
    ALL,
    BATCH,
    BRANCHES,
    NOT_CHOSEN,
    UNDECIDED,
    UPSTREAM_FAILED,
    CountedGroup,
    Edge,
    EndedStep,
    GroupCounts,
    after_job,
    after_members,
    depth_first,
    reason_for,
)
from windlass.domain.ended import NO_EFFECTS, Effects, Ended, Unfinished
from windlass.domain.identity import FIRST_ID, new_job_id
from windlass.domain.states import TERMINAL, JobStatus
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.ending import FollowUps, end_canceled
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import batch_ends, flow_branches
from windlass.stores.plans.flow_rows import (
    CANCEL,
    CANCEL_CHILDREN,
    RELEASE,
    ToCancel,
    ToRelease,
    cancels_of,
    followers_to_release,
    member_changes,
    releases_of,
)

MOST_ROWS: Final = 1_000
"""Number of followers that one transaction releases, cancels or revives."""

_COUNTS: Final = len(GroupCounts._fields)
NO_BATCHES: Final[Mapping[str, BatchRules]] = MappingProxyType({})


def follow(
    dialect: Dialect, ended: Sequence[EndedStep], batches: Mapping[str, BatchRules] = NO_BATCHES
) -> Plan[Effects]:
    """Release, cancel and count what depends on jobs that this transaction has ended, and on canceled `batches`."""
    wave = _Wave(dialect)
    for step in ended:
        wave.job_ended(step)
    for batch, rules in batches.items():
        yield from wave.batch_canceled(batch, rules)
    return (yield from wave.run())


def decide_batches(dialect: Dialect, batches: Sequence[str]) -> Plan[Effects]:
    """Decide again about the followers of batches that have ended."""
    wave = _Wave(dialect)
    for batch in batches:
        rules = yield from batch_ends.rules_of_batch(dialect, batch)
        row = yield Step("batch_state", {"id": batch})
        if row is not None:
            counts, status = GroupCounts(*row[:_COUNTS]), JobStatus(row[_COUNTS])
            if status is JobStatus.CANCELED:
                wave.follow_canceled(batch, rules)
            elif status in TERMINAL:
                wave.batch_ended(batch, after_batch(counts, rules))
    return (yield from wave.run())


def carry_on(dialect: Dialect, unfinished: Unfinished, follow_ups: FollowUps = ()) -> Plan[Effects]:
    """Write the next part of what earlier transactions have left; the answer says whether there is more."""
    wave = _Wave(dialect, wait=True)
    wave.changes.update({(group, True): 0 for group in unfinished.groups})
    done: list[str] = []
    if unfinished.operations:
        chosen = {"ids": dialect.ids(sorted(unfinished.operations))}
        for operation, kind, detail in (yield Step("lock_operations", chosen)):
            wave.resume(kind, detail)
            done.append(operation)
    effects = yield from end_canceled(dialect, (yield from wave.run()), follow_ups)
    for operation in done:
        yield Step("delete_operation", {"id": operation})
    reached("settle.before_commit")
    return effects


class _Wave:
    """What is still to be released, canceled and counted, and what was. One per run of a plan."""

    def __init__(self, dialect: Dialect, *, wait: bool = False) -> None:
        self._dialect = dialect
        self._wait = wait
        """Whether to wait for groups that other transactions count."""
        self.releases: list[ToRelease] = []
        self.cancels: dict[tuple[str, int], ToCancel] = {}
        self.changes: Counter[tuple[str, bool]] = Counter()
        """Ended members by group, and whether they succeeded."""
        self._canceled_groups: set[str] = set()
        """Groups of which a canceled member was counted here."""
        self._failed_groups: set[str] = set()
        self._unchosen_groups: set[str] = set()
        """Groups in branches that were not chosen: nothing that follows them runs, whatever they are counted."""
        self._work: set[tuple[str, int]] = set()
        self._ended: dict[str, Ended] = {}
        self._edges: list[Edge] = []
        self._groups: set[str] = set()
        self._operations: set[str] = set()
        self._branches = flow_branches.BranchWrites()
        self._reports: list[BatchReport] = []
        self._guarded: list[str] = []
        """Batches with followers whose predicates are called by their own attempts."""

    def job_ended(self, step: EndedStep) -> None:
        """Add what the end of a job decides."""
        decision = after_job(step.status)
        release, canceled = decision.release & step.leads, decision.cancel & step.leads
        if step.branches is not None:
            release, canceled = release - BRANCHES, canceled | (step.leads & decision.guard)
            self._branches.add(step.job_id, step.branches)
        elif decision.guard & step.leads:
            self._branches.undecided.append(step.job_id)
        if release:
            self.releases += followers_to_release(step.job_id, release)
        if canceled:
            given = step.reason if step.cause is not None else None
            self._cancel_later(
                ToCancel(step.job_id, kind.value, step.cause or step.job_id, given or reason_for(step.status, kind))
                for kind in canceled
            )
        if step.group_id is not None:
            self._count(step.group_id, step.status)

    def resume(self, kind: str, detail: str) -> None:
        """Add what an operation has left."""
        if kind == RELEASE:
            self.releases += releases_of(detail)
        elif kind == CANCEL:
            self._cancel_later(cancels_of(detail))

    def _cancel_later(self, followers: Iterable[ToCancel]) -> None:
        """Add followers to cancel; the first cause counts."""
        for one in followers:
            self.cancels.setdefault((one.parent_id, one.follows), one)

    def _count(self, group: str, status: JobStatus) -> None:
        self.changes[group, status is JobStatus.SUCCEEDED] += 1
        if status is JobStatus.FAILED:
            self._failed_groups.add(group)
        elif status is JobStatus.CANCELED:
            self._canceled_groups.add(group)

    def run(self) -> Plan[Effects]:
        """Write wave after wave, until nothing follows any more or enough rows were written."""
        if self._branches:
            yield from self._decide_branches()
        while self.releases or self.cancels or self.changes or self._guarded:
            if self._guarded:
                yield from self._release_guarded()
            if self.releases:
                yield from self._release()
            if self.cancels:
                yield from self._cancel()
            if self.changes:
                yield from self._count_members()
        if not (self._work or self._ended or self._groups or self._operations or self._reports):
            return NO_EFFECTS
        return Effects(
            work=frozenset(self._work),
            canceled=tuple(self._ended[job] for job in depth_first(self._edges)),
            unfinished=Unfinished(frozenset(self._groups), frozenset(self._operations)),
            branches=self._branches.fired,
            batches=tuple(self._reports),
        )

    def _decide_branches(self) -> Plan[None]:
        """Release branches that were chosen, and cancel those whose predicate failed; the others are passed by."""
        self._work.update((yield from self._branches.release(self._dialect)))
        failed = yield from self._branches.cancel(self._dialect)
        for one in failed:
            self._canceled(one)
            self._cancel_later(ToCancel(one.job_id, kind.value, one.cause, NOT_CHOSEN) for kind in ALL)

    def _release(self) -> Plan[None]:
        parents, self.releases = self.releases, []
        most = MOST_ROWS + len(parents)  # a flush of single chains is never too large
        released = yield from self._dialect.release_followers(parents, most)
        self._work.update(released)
        if released.total() == most:
            yield from self._leave(RELEASE, parents)
        reached("flow.released")

    def _cancel(self) -> Plan[None]:
        parents, self.cancels = list(self.cancels.values()), {}
        most = MOST_ROWS - len(self._ended)
        if most <= 0:
            yield from self._leave_cancels(parents)
            return
        rows = yield Step("downstream", {"rows": json_text(parents), "most": most})
        found = [flow_branches.UnreleasedJob(*row) for row in rows]
        if not found:
            return
        yield from flow_branches.cancel_unreleased(self._dialect, found)
        for one in found:
            self._canceled(one)
        if len(found) == most:
            further = [ToCancel(one.job_id, kind.value, one.cause, one.reason) for one in found for kind in sorted(ALL)]
            yield from self._leave_cancels([*parents, *further])
        reached("flow.wave")

    def _canceled(self, follower: flow_branches.UnreleasedJob) -> None:
        """Note a canceled follower, and count it; its group has failed if it was a failure that canceled it."""
        self._ended[follower.job_id] = follower.ended
        self._edges.append(Edge(follower.job_id, follower.parent_id))
        group = follower.group_id
        if group is None:
            return
        self._count(group, JobStatus.FAILED if follower.reason == UPSTREAM_FAILED else JobStatus.CANCELED)
        if follower.reason == NOT_CHOSEN:
            self._unchosen_groups.add(group)
            self._cancel_later(ToCancel(group, kind.value, follower.cause, NOT_CHOSEN) for kind in ALL)

    def _leave_cancels(self, parents: Sequence[ToCancel]) -> Plan[None]:
        """Leave those with followers that still wait to an operation."""
        rows = yield Step("still_followed", {"rows": json_text(parents)})
        if rows:
            yield from self._leave(CANCEL, [ToCancel(*row) for row in rows])

    def _leave(self, kind: str, detail: Sequence[ToRelease] | Sequence[ToCancel] | Sequence[str]) -> Plan[None]:
        """Leave the rest to an operation."""
        operation = new_job_id()
        yield Step("save_operation", {"id": operation, "kind": kind, "detail": json_text(detail)})
        self._operations.add(operation)

    def _count_members(self) -> Plan[None]:
        changes, self.changes = member_changes(self.changes), Counter()
        batches: list[CountedGroup] = []
        for group in (yield from self._dialect.count_members(changes, wait=self._wait)):
            if group.counts is None:
                self._groups.add(group.group_id)
                continue
            if group.counts.kind == BATCH:
                batches.append(group)
                continue
            name, decision = group.group_id, after_members(group.counts)
            if decision is not UNDECIDED and name not in self._unchosen_groups:
                reason = self._reason(name) if group.counts.failed else reason_for(JobStatus.SUCCEEDED)
                self.releases += followers_to_release(name, decision.release)
                self._cancel_later(ToCancel(name, kind.value, name, reason) for kind in decision.cancel)
        if batches:
            yield from self._count_batches(batches)
        reached("flow.counted")

    def _count_batches(self, counted: Sequence[CountedGroup]) -> Plan[None]:
        """End batches whose last child was counted."""
        for batch in (yield from batch_ends.count(self._dialect, counted)):
            self._reports.append(batch.report)
            if batch.decision is not None:
                self.batch_ended(batch.report.batch_id, batch.decision)

    def batch_canceled(self, batch: str, rules: BatchRules) -> Plan[None]:
        """Add what the cancel of a batch decides; its children are canceled by an operation."""
        self.follow_canceled(batch, rules)
        yield from self._leave(CANCEL_CHILDREN, [batch, FIRST_ID])

    def follow_canceled(self, batch: str, rules: BatchRules) -> None:
        """Add the followers of a batch that was canceled."""
        reason = reason_for(JobStatus.CANCELED)
        self._cancel_later(ToCancel(batch, way, batch, reason) for way in ways_to_follow(rules.conditions))

    def batch_ended(self, batch: str, decision: BatchDecision) -> None:
        """Add what the end of a batch decides."""
        self.releases += [ToRelease(batch, way) for way in decision.release]
        self._cancel_later(ToCancel(batch, way, batch, reason) for way, reason in decision.cancel)
        if decision.guards:
            self._guarded.append(batch)

    def _release_guarded(self) -> Plan[None]:
        guarded, self._guarded = self._guarded, []
        self._work.update((yield from flow_branches.release_guarded(self._dialect, guarded)))

    def _reason(self, group: str) -> str:
        only_canceled = group in self._canceled_groups and group not in self._failed_groups
        return reason_for(JobStatus.CANCELED if only_canceled else JobStatus.FAILED)
