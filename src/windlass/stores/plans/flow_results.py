"""Plans that read the results which followers take: of the job before them, or of the members of a group."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.ended import Ended
from windlass.domain.job import Payload
from windlass.domain.states import JobStatus, Move
from windlass.domain.transition import Failure, Times
from windlass.stores.columns import END, JOB, STATE
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import reads

_ENDED_BY: Final = {
    JobStatus.SUCCEEDED.value: Move.SUCCEED,
    JobStatus.FAILED.value: Move.FAIL,
    JobStatus.PAUSED.value: Move.FAIL,  # a dead letter that was paused since
    JobStatus.CANCELED.value: Move.CANCEL,
}


class Wanted(NamedTuple):
    """The results that one follower takes."""

    job_id: str
    """The follower."""
    of_group: bool
    outcomes: bool
    """Whether it takes `JobResult`s, for which more is read than the results."""


class ResultSource(NamedTuple):
    """What was read for one follower."""

    parent_id: str
    """The job or group that it follows."""
    jobs: Sequence[Ended] = ()
    """The job, or the members in order, with payloads only if `JobResult`s are wanted."""
    joined_bytes: int = 0
    """Size of the members' results; they are not read if that is too large."""
    missing: int = 0
    """Number of results that are no longer stored."""


def read(dialect: Dialect, wanted: Sequence[Wanted], max_bytes: int) -> Plan[dict[str, ResultSource]]:
    """Return the results that followers take, by follower. The number of statements does not depend on how many."""
    followers = {"ids": dialect.ids([one.job_id for one in wanted])}
    parents: dict[str, str] = dict((yield Step("parents_of", followers, autocommit=True)))
    groups = sorted({parents[one.job_id] for one in wanted if one.of_group and one.job_id in parents})
    sizes: dict[str, int] = {}
    totals: dict[str, int] = {}
    members: dict[str, list[str]] = {}
    if groups:
        for group, size, total in (yield Step("size_of_results", {"ids": dialect.ids(groups)}, autocommit=True)):
            sizes[group], totals[group] = size, total
        small = [group for group in groups if sizes.get(group, 0) <= max_bytes]
        for group, job in (yield Step("members_of_groups", {"ids": dialect.ids(small)}, autocommit=True)):
            members.setdefault(group, []).append(job)
    full = _full(wanted, parents, members)
    ended = yield from _ended(dialect, full, {*parents.values(), *(job for jobs in members.values() for job in jobs)})
    return {
        follower: _source(parent, [ended[job] for job in members.get(parent, [parent]) if job in ended], sizes, totals)
        for follower, parent in parents.items()
    }


def ended_jobs(dialect: Dialect, jobs: Collection[str]) -> Plan[dict[str, Ended]]:
    """Return those of these jobs that have ended, by id, with their payloads."""
    return (yield from _ended(dialect, jobs, ()))


def _source(parent: str, jobs: Sequence[Ended], sizes: Mapping[str, int], totals: Mapping[str, int]) -> ResultSource:
    return ResultSource(parent, jobs, sizes.get(parent, 0), max(0, totals.get(parent, 1) - len(jobs)))


def _full(wanted: Sequence[Wanted], parents: dict[str, str], members: dict[str, list[str]]) -> set[str]:
    """Return the jobs of which everything is read."""
    asked = [parents[one.job_id] for one in wanted if one.outcomes and one.job_id in parents]
    return {job for parent in asked for job in members.get(parent, [parent])}


def _ended(dialect: Dialect, full: Collection[str], jobs: Collection[str]) -> Plan[dict[str, Ended]]:
    found: dict[str, Ended] = {}
    if full:
        rows = yield Step("results_of_jobs", {"ids": dialect.ids(sorted(full))}, autocommit=True)
        found |= {row[0]: _with_payload(reads.named((*JOB, *STATE, *END), row)) for row in rows}
    rest = sorted(set(jobs) - set(full))
    if rest:
        rows = yield Step("values_of_jobs", {"ids": dialect.ids(rest)}, autocommit=True)
        found |= {row[0]: _with_value(*row) for row in rows}
    return found


def _with_value(job: str, status: str, target: str, queue: str, result: str | None) -> Ended:
    return Ended(job, target, queue, 0, _ended_by(status), result=result)


def _ended_by(status: str) -> Move:
    """Return how a job has ended; by failure, if its row is damaged."""
    return _ENDED_BY.get(status, Move.FAIL)


def _with_payload(row: dict[str, Any]) -> Ended:
    return Ended(
        job_id=row["id"],
        target=row["target"],
        queue=row["queue"],
        priority=row["priority"],
        move=_ended_by(row["status"]),
        correlation_id=row["correlation_id"],
        attempts=row["attempts"],
        reason=row["reason"],
        failure=None if row["error"] is None else Failure(row["error"], row["error_class"] or ""),
        result=row["result"],
        times=Times(row["started_at"], row["finished_at"], None),
        payload=Payload(**{name: row[name] for name in Payload._fields}),
    )
