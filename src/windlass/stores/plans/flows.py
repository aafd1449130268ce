"""Plans for flows: the end of a job releases, cancels and counts what depends on it, in the transaction that ends it.

A wave walks along the followers of what has ended; members of groups among the canceled ones are counted, which may end
groups, and so on. More rows than one transaction should write are left to an operation, which is stored by the same
transaction and carried out after its commit. Followers that are not released cannot run, so late is safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.dependencies import (
    ALL,
    BRANCHES,
    UNDECIDED,
    UPSTREAM_CANCELED,
    UPSTREAM_FAILED,
    Edge,
    EndedStep,
    Follows,
    MemberChange,
    after_job,
    after_members,
    depth_first,
    reason_for,
)
from windlass.domain.ended import NO_EFFECTS, Effects, Ended, Unfinished
from windlass.domain.identity import new_job_id
from windlass.domain.job import NewJob
from windlass.domain.states import JobStatus
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import flow_branches
from windlass.stores.plans.flow_branches import UnreleasedJob

MOST_ROWS: Final = 1_000
"""Number of followers that one transaction releases, cancels or revives."""

CANCEL: Final = "cancel_downstream"
RELEASE: Final = "release"
REVIVE: Final = "revive"
"""Keeps the checks from deciding about a flow that a retry revives in several transactions; its id is the flow's."""


class ToRelease(NamedTuple):
    """Followers to release: of this parent, those that follow it in this way."""

    parent_id: str
    follows: int


class ToCancel(NamedTuple):
    """Followers to cancel: of this parent, those that follow it in this way."""

    parent_id: str
    follows: int
    cause: str
    """The job or group whose end it was; a retry of it revives them."""
    reason: str


def store_positions(dialect: Dialect, rows: Sequence[NewJob]) -> Plan[None]:
    """Store the positions of new jobs in their flows, and the groups that they count for."""
    del dialect
    positions = [(row.id, row.position) for row in rows if row.position is not None]
    if not positions:
        return
    yield Step("insert_flow", {"rows": json_text([(job_id, *position[:-1]) for job_id, position in positions])})
    totals = Counter(
        (position.group_id, position.flow_id) for _, position in positions if position.group_id is not None
    )
    if totals:
        groups = [(group, flow, total, 0, 0) for (group, flow), total in totals.items()]
        yield Step("insert_groups", {"rows": json_text(groups)})


def follow(dialect: Dialect, ended: Sequence[EndedStep]) -> Plan[Effects]:
    """Release, cancel and count what depends on jobs that this transaction has ended."""
    wave = _Wave(dialect)
    for step in ended:
        wave.job_ended(step)
    return (yield from wave.run())


def carry_on(dialect: Dialect, unfinished: Unfinished) -> Plan[Effects]:
    """Write the next part of what earlier transactions have left; the answer says whether there is more."""
    wave = _Wave(dialect, wait=True)
    wave.changes.update({(group, True): 0 for group in unfinished.groups})
    done: list[str] = []
    if unfinished.operations:
        chosen = {"ids": dialect.ids(sorted(unfinished.operations))}
        for operation, kind, detail in (yield Step("lock_operations", chosen)):
            wave.resume(kind, detail)
            done.append(operation)
    effects = yield from wave.run()
    for operation in done:
        yield Step("delete_operation", {"id": operation})
    reached("settle.before_commit")
    return effects


def cancels_of(detail: str) -> list[ToCancel]:
    """Return what the operation of a cascade has left; nothing if it is damaged: the checks find its followers."""
    try:
        return [ToCancel(*row) for row in msgspec.json.decode(detail, type=list[tuple[str, int, str, str]])]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []


def _releases_of(detail: str) -> list[ToRelease]:
    """Return what the operation of a release has left; the same."""
    try:
        return [ToRelease(*row) for row in msgspec.json.decode(detail, type=list[tuple[str, int]])]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []


def parents_of(kind: str, detail: str) -> set[str]:
    """Return the jobs and groups whose followers an operation releases or cancels."""
    rows: Sequence[ToRelease | ToCancel] = _releases_of(detail) if kind == RELEASE else cancels_of(detail)
    return {row.parent_id for row in rows}


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
        self._work: set[tuple[str, int]] = set()
        self._ended: dict[str, Ended] = {}
        self._edges: list[Edge] = []
        self._groups: set[str] = set()
        self._operations: set[str] = set()
        self._branches = flow_branches.BranchWrites()

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
            self._decide(step.job_id, release)
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
            self.releases += _releases_of(detail)
        elif kind == CANCEL:
            self._cancel_later(cancels_of(detail))

    def _decide(self, parent: str, release: Collection[Follows]) -> None:
        self.releases += [ToRelease(parent, kind.value) for kind in sorted(release)]

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
        while self.releases or self.cancels or self.changes:
            if self.releases:
                yield from self._release()
            if self.cancels:
                yield from self._cancel()
            if self.changes:
                yield from self._count_members()
        if not (self._work or self._ended or self._groups or self._operations):
            return NO_EFFECTS
        unfinished = Unfinished(frozenset(self._groups), frozenset(self._operations))
        canceled = tuple(self._ended[job] for job in depth_first(self._edges))
        return Effects(frozenset(self._work), canceled=canceled, unfinished=unfinished, branches=self._branches.fired)

    def _decide_branches(self) -> Plan[None]:
        """Release branches that were chosen, and cancel those whose predicate failed; the others are passed by."""
        self._work.update((yield from self._branches.release(self._dialect)))
        failed = yield from self._branches.cancel(self._dialect)
        for one in failed:
            self._canceled(one)
            self._cancel_later(ToCancel(one.job_id, kind.value, one.cause, UPSTREAM_CANCELED) for kind in ALL)

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
        found = [UnreleasedJob(*row) for row in rows]
        if not found:
            return
        yield from flow_branches.cancel_unreleased(self._dialect, found)
        for one in found:
            self._canceled(one)
        if len(found) == most:
            further = [ToCancel(one.job_id, kind.value, one.cause, one.reason) for one in found for kind in sorted(ALL)]
            yield from self._leave_cancels([*parents, *further])
        reached("flow.wave")

    def _canceled(self, follower: UnreleasedJob) -> None:
        """Note a canceled follower, and count it; its group has failed if it was a failure that canceled it."""
        self._ended[follower.job_id] = follower.ended
        self._edges.append(Edge(follower.job_id, follower.parent_id))
        if follower.group_id is not None:
            failed = follower.reason == UPSTREAM_FAILED
            self._count(follower.group_id, JobStatus.FAILED if failed else JobStatus.CANCELED)

    def _leave_cancels(self, parents: Sequence[ToCancel]) -> Plan[None]:
        """Leave those with followers that still wait to an operation."""
        rows = yield Step("still_followed", {"rows": json_text(parents)})
        if rows:
            yield from self._leave(CANCEL, [ToCancel(*row) for row in rows])

    def _leave(self, kind: str, detail: Sequence[ToRelease] | Sequence[ToCancel]) -> Plan[None]:
        """Leave the rest to an operation."""
        operation = new_job_id()
        yield Step("save_operation", {"id": operation, "kind": kind, "detail": json_text(detail)})
        self._operations.add(operation)

    def _count_members(self) -> Plan[None]:
        changes, self.changes = _changes(self.changes), Counter()
        for group in (yield from self._dialect.count_members(changes, wait=self._wait)):
            if group.counts is None:
                self._groups.add(group.group_id)
                continue
            decision = after_members(group.counts)
            if decision is not UNDECIDED:
                name = group.group_id
                reason = self._reason(name) if group.counts.failed else reason_for(JobStatus.SUCCEEDED)
                self._decide(name, decision.release)
                self._cancel_later(ToCancel(name, kind.value, name, reason) for kind in decision.cancel)
        reached("flow.counted")

    def _reason(self, group: str) -> str:
        only_canceled = group in self._canceled_groups and group not in self._failed_groups
        return reason_for(JobStatus.CANCELED if only_canceled else JobStatus.FAILED)


def _changes(counted: Counter[tuple[str, bool]]) -> list[MemberChange]:
    groups = sorted({group for group, _ in counted})
    return [MemberChange(group, counted[group, True], counted[group, False]) for group in groups]
