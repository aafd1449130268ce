"""Flows for the contract: drafted job by job, and ended as workers end them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from windlass.domain.branches import Branch
from windlass.domain.dependencies import FlowPosition, Follows, GroupCounts
from windlass.domain.ended import NO_EFFECTS, Effects, Ended, Unfinished
from windlass.domain.identity import new_job_id
from windlass.domain.job import Claim, NewJob
from windlass.domain.states import JobStatus
from windlass.domain.transition import Transition, dead_letter, succeeded
from windlass.flow import followers
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, MovedJobs, end
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import flow_checks, flow_revival, flows, jobs, moves, reads
from windlass.submission.stored_options import StoredFlow, from_text, with_flow
from windlass.testing.contract.workbench import FAILURE, Workbench, new_job

FOLLOW_UPS: Final[FollowUps] = followers.feature(60.0).follow_ups
"""What belongs to the end of jobs in flows."""
NOTHING_LEFT: Final = Unfinished()
MANY: Final = flows.MOST_ROWS + 200
"""More followers than one transaction writes, and fewer than two do."""


NO_BRANCHES: Final[Mapping[str, tuple[Branch, ...]]] = MappingProxyType({})


class FlowDraft:
    """A flow to be stored. Ids grow in the order in which jobs are added."""

    def __init__(self) -> None:
        self._rows: list[NewJob] = []

    def job(
        self,
        parent: str | None = None,
        follows: Follows = Follows.THEN,
        *,
        group: str | None = None,
        delay_us: int | None = None,
        due_at: int | None = None,
        **changes: Any,
    ) -> str:
        """Add a job that follows a job or a group, and counts for a group; return its id."""
        row = new_job(**changes)
        flow_id = self._rows[0].id if self._rows else row.id
        position = FlowPosition(flow_id, parent, follows.value, group, delay_us, due_at, answers=not self._rows)
        if parent is None:
            position = position._replace(follows=None)
        else:
            row = row._replace(due_at=None, delay_us=None)
        self._rows.append(row._replace(position=position))
        return row.id

    def group(self) -> str:
        """Return the id of a new group."""
        return new_job_id()

    def store(self, bench: Workbench, branches: Mapping[str, tuple[Branch, ...]] = NO_BRANCHES) -> None:
        """Store all jobs in one transaction."""
        leads: defaultdict[str, set[int]] = defaultdict(set)
        for row in self._rows:
            if row.position is not None and row.position.parent_id is not None and row.position.follows is not None:
                leads[row.position.parent_id].add(row.position.follows)
        (answer,) = bench.submit([_with_options(row, leads[row.id], branches.get(row.id, ())) for row in self._rows])
        assert isinstance(answer, list), answer


def _with_options(row: NewJob, leads: Iterable[int], branches: tuple[Branch, ...]) -> NewJob:
    group, given = None if row.position is None else row.position.group_id, from_text(row.options).flow
    stored = StoredFlow(tuple(sorted(leads)), group, branches=branches, guard=None if given is None else given.guard)
    return row if stored == StoredFlow() else row._replace(options=with_flow(None, stored))


def chain(bench: Workbench, length: int, **changes: Any) -> list[str]:
    """Store jobs each of which follows the one before it."""
    draft, ids = FlowDraft(), list[str]()
    for _ in range(length):
        ids.append(draft.job(ids[-1] if ids else None, **changes))
    draft.store(bench)
    return ids


def star(bench: Workbench, count: int, **changes: Any) -> list[str]:
    """Store a job and `count` jobs that follow it."""
    draft = FlowDraft()
    head = draft.job()
    ids = [head, *(draft.job(head, **changes) for _ in range(count))]
    draft.store(bench)
    return ids


class JoinedJobs(NamedTuple):
    """A group and its followers."""

    group: str
    members: list[str]
    join: str
    """Follows the success of all members."""
    on_failure: str
    always: str


def joined(bench: Workbench, members: int) -> JoinedJobs:
    """Store a group with a follower of each kind."""
    draft = FlowDraft()
    group = draft.group()
    ids = [draft.job(group=group) for _ in range(members)]
    followers_of = [draft.job(group, follows) for follows in (Follows.THEN, Follows.FAILURE, Follows.ALWAYS)]
    draft.store(bench)
    return JoinedJobs(group, ids, *followers_of)


# ---------------------------------------------------------------------- ends


def finish(
    bench: Workbench, claims: Sequence[Claim], *, fails: bool = False, follow_ups: FollowUps = FOLLOW_UPS
) -> Effects:
    """End claims as the completer does, in one transaction."""
    return bench.database.run(finish_plan, [transition_of(bench, claim, fails=fails) for claim in claims], follow_ups)


def finish_plan(dialect: Dialect, transitions: Sequence[Transition], follow_ups: FollowUps) -> Plan[Effects]:
    """Write outcomes and what follows from them."""
    won = yield from jobs.apply(dialect, transitions, alone=False)
    ended = [
        Ended(one.job_id, "shop:charge", "default", 2, one.move)
        for one, fine in zip(transitions, won, strict=True)
        if fine
    ]
    return (yield from end(dialect, ended, follow_ups))


def transition_of(bench: Workbench, claim: Claim, *, fails: bool) -> Transition:
    """Return the end of a claim."""
    if fails:
        return dead_letter(claim, bench.times(), FAILURE, "retry_exhausted", holds_key=True)
    return succeeded(claim, bench.times(), None, holds_key=True)


def claims_of(bench: Workbench) -> dict[str, Claim]:
    """Claim everything that is due, by job."""
    return {claim.job_id: claim for claim in bench.claim_all(2 * MANY, chunk=2 * MANY).claims}


def run_due(bench: Workbench, *, fails: bool = False) -> Effects:
    """Claim and end everything that is due."""
    return finish(bench, list(claims_of(bench).values()), fails=fails)


def cancel(bench: Workbench, *ids: str) -> MovedJobs:
    """Cancel jobs as a verb does, up to its first commit."""
    return bench.database.run(moves.cancel, ids, FOLLOW_UPS)


def carried_on(bench: Workbench, effects: Effects) -> tuple[Effects, int]:
    """Carry on what a commit has left until nothing is; return all effects, and the number of transactions."""
    everything, left, rounds = NO_EFFECTS, effects.unfinished, 0
    while left:
        following = bench.database.run(flows.carry_on, left)
        everything, left, rounds = everything | following, following.unfinished, rounds + 1
    return everything, rounds


def retry(bench: Workbench, *ids: str) -> MovedJobs:
    """Start jobs over as a verb does: what has to come first is carried out before it."""
    while True:
        try:
            return bench.database.run(moves.retry, ids, FOLLOW_UPS)
        except flow_revival.LargeRevivalError as large:
            revived = bench.database.run(flow_revival.revive_some, large.ids)
            assert revived, "a retry that is too large must find something to revive first"
        except flow_revival.UnfinishedCascadeError as cascade:
            bench.database.run(flows.carry_on, cascade.unfinished)


# ---------------------------------------------------------------------- what is stored


def statuses(bench: Workbench, ids: Sequence[str]) -> dict[JobStatus, int]:
    """Return how many of these jobs are in each status."""
    return dict(Counter(outcome.status for outcome in bench.database.read(reads.outcomes, ids)))


def status_of(bench: Workbench, job_id: str) -> JobStatus:
    """Return the status of a job."""
    return bench.job(job_id).status


def counts(bench: Workbench, group: str) -> GroupCounts:
    """Return what a group has counted, without what is only noted."""
    total, succeeded_, failed, *_ = _recount(bench, group)
    return GroupCounts(total, succeeded_, failed)


def assert_counted(bench: Workbench, group: str) -> None:
    """Assert that a group counts exactly the members that have ended, and that nothing is left to be counted."""
    _, succeeded_, failed, really_succeeded, really_failed = _recount(bench, group)
    assert (succeeded_, failed) == (really_succeeded, really_failed)
    assert find_unfinished(bench) == NOTHING_LEFT


def _recount(bench: Workbench, group: str) -> Sequence[int]:
    def plan(dialect: Dialect) -> Plan[Sequence[int]]:
        del dialect
        row: Sequence[int] = yield Step("recount_members", {"id": group})
        return row

    return bench.database.run(plan)


def find_unfinished(bench: Workbench) -> Unfinished:
    """Return everything that is noted or begun and not carried out, however long ago."""
    bench.clock.advance(flow_checks.OPERATION_IDLE_US / 1_000_000 + 1)
    return bench.database.run(flow_checks.find_unfinished)


def canceled_by(bench: Workbench, job_id: str) -> tuple[str | None, str | None]:
    """Return why a job was canceled, and the job or group whose end it was."""
    stored = bench.database.read(reads.get, job_id)
    assert stored is not None
    return stored.job["reason"], stored.job["canceled_by"]


def due_times(bench: Workbench, ids: Sequence[str]) -> list[int]:
    """Return when these jobs are due, in order; those that are not released are left out."""
    found = bench.database.read(jobs.due_times, ids)
    return [due for job in ids if (due := found.get(job)) is not None]
