"""Plans for a job's life: submit, load, apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from windlass.domain.admission import Admission, admit
from windlass.domain.ended import Ended
from windlass.domain.job import Claim, Conflict, NewJob, Payload, SubmittedJob
from windlass.domain.states import JobStatus, Move
from windlass.domain.tags import tags_of
from windlass.domain.transition import Transition
from windlass.runtime.failpoints import reached
from windlass.stores.channels import DONE
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, MovedJobs, end
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans import flow_positions, permits, signal_waits

Answer = list[SubmittedJob] | Conflict


class Submission(NamedTuple):
    """The answers to units of jobs, and the jobs that they superseded."""

    answers: list[Answer]
    superseded: MovedJobs = MovedJobs([])


def submit(
    dialect: Dialect,
    units: Sequence[Sequence[NewJob]],
    new_queues: Sequence[str],
    notification: str | None = None,
    follow_ups: FollowUps = (),
) -> Plan[Submission]:
    """Store the units of callers, each as a whole or not at all, and return the answer to each.

    New queues are stored. `notification` is what other processes get if, and when, this is committed.
    """
    jobs = [job for unit in units for job in unit]
    if new_queues:
        yield Step("insert_queue", rows=[{"name": name} for name in new_queues])
    if not any(job.idempotency_key or job.business_key or job.tags or job.position or job.wait for job in jobs):
        yield from dialect.insert_jobs(jobs, alone=not new_queues, notification=notification)
        reached("submit.before_commit")
        return Submission([[SubmittedJob(job.id) for job in unit] for unit in units])
    admission = yield from _decide(dialect, units, jobs)
    superseded = yield from store(dialect, admission, notification, follow_ups)
    reached("submit.before_commit")
    return Submission(admission.answers, superseded)


def _decide(dialect: Dialect, units: Sequence[Sequence[NewJob]], jobs: Sequence[NewJob]) -> Plan[Admission]:
    idempotency = {job.idempotency_key for job in jobs if job.idempotency_key}
    business = {job.business_key for job in jobs if job.business_key}
    known = (yield from dialect.find_keys(sorted(idempotency))) if idempotency else {}
    holders = (yield from dialect.find_holders(sorted(business))) if business else {}
    return admit(units, known, holders)


def store(
    dialect: Dialect, admission: Admission, notification: str | None, follow_ups: FollowUps = ()
) -> Plan[MovedJobs]:
    """Write what was admitted; answers the jobs that were canceled for it.

    Keys before rows: a key that another transaction took meanwhile restarts the plan, which then sees its holder.
    """
    rows = admission.rows
    idempotency = sorted((job.idempotency_key, job.id) for job in rows if job.idempotency_key)
    if idempotency:
        free = yield from dialect.insert_keys("insert_keys", idempotency)
        if free != len(idempotency):
            raise RestartPlanError
    if rows:
        yield from dialect.insert_jobs(rows, alone=False, notification=notification)
        yield from flow_positions.store(dialect, rows)
        yield from signal_waits.store_waits(dialect, rows)
    superseded = yield from _supersede(dialect, admission.replaced, follow_ups)
    business = sorted(
        (job.business_key, job.id) for job in rows if job.business_key and job.id not in admission.replaced
    )
    if business:
        free = yield from dialect.insert_keys("insert_live_keys", business)
        if free != len(business):
            raise RestartPlanError
    tags = [(tag, job.id) for job in rows for tag in tags_of(job.tags)]
    if tags:
        yield from dialect.insert_keys("insert_tags", tags)
    return superseded


def follow(dialect: Dialect, rows: Sequence[NewJob], new_queues: Sequence[str]) -> Plan[None]:
    """Store jobs that follow from other writes of this transaction. They have no keys, so nothing conflicts."""
    if new_queues:
        yield Step("insert_queue", rows=[{"name": name} for name in new_queues])
    yield from store(dialect, Admission(list(rows), {}, []), None)


def _supersede(dialect: Dialect, replaced: dict[str, str], follow_ups: FollowUps) -> Plan[MovedJobs]:
    """Cancel the old holders, which must not have started meanwhile, and release their keys."""
    if not replaced:
        return MovedJobs([])
    pairs = [{"id": old, "superseded_by": new} for old, new in replaced.items()]
    yield Step("supersede_done", rows=pairs)
    gone = yield Step("supersede_hot", rows=pairs)
    if sum(gone) != len(pairs):
        raise RestartPlanError
    yield Step("delete_live_key", rows=[{"holder_id": pair["id"]} for pair in pairs])
    yield from dialect.notify(DONE, "")
    rows = {row[0]: row for row in (yield Step("superseded_jobs", {"ids": dialect.ids(list(replaced))}))}
    ended = [_superseded(*rows[old]) for old in replaced if old in rows]
    return MovedJobs(ended, (yield from end(dialect, ended, follow_ups)))


def _superseded(
    job_id: str, queue: str, priority: int, target: str, correlation_id: str | None, in_flow: int, unsignaled: int
) -> Ended:
    left = JobStatus.WAITING if unsignaled else JobStatus.PENDING
    reason, follows = "superseded", bool(in_flow)
    return Ended(job_id, target, queue, priority, Move.CANCEL, left, correlation_id, reason=reason, in_flow=follows)


def claims_of(dialect: Dialect, node: str) -> Plan[list[Claim]]:
    """Return everything claimed by a node."""
    rows = yield Step("claims_of_node", {"node": node}, alone=True)
    return [Claim._make(row) for row in rows]


def fences_of(dialect: Dialect, ids: Sequence[str]) -> Plan[set[tuple[str, int]]]:
    """Return which of these jobs are RUNNING, and their fences."""
    rows = yield Step("running_fences", {"ids": dialect.ids(ids)}, alone=True)
    return {(job, fence) for job, fence in rows}


def due_times(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, int]]:
    """Return when waiting jobs are due."""
    rows = yield Step("due_times", {"ids": dialect.ids(ids)})
    return dict(rows)


def load(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, Payload]]:
    """Read the payloads of claimed jobs, many at once."""
    payloads = yield from dialect.load(ids)
    return payloads


def apply(
    dialect: Dialect, transitions: Sequence[Transition], *, retried: bool = False, alone: bool = True
) -> Plan[list[bool]]:
    """Write transitions, each guarded by its own fence; return, in order, which ones were won.

    `retried` is True when an earlier try was cut off while it committed: what is in the history already was won.
    `alone` is False when the caller has more to write in the same transaction.
    """
    won = [False] * len(transitions)
    todo = list(range(len(transitions)))
    if retried:
        found = yield from dialect.applied(transitions)
        won = list(found)
        todo = [index for index in todo if not won[index]]
    keys = [i for i in todo if transitions[i].releases_business_key]
    crashed = [i for i in todo if transitions[i].crashes]
    lingering = [transitions[i] for i in todo if transitions[i].lingers]
    writes = _by_write(dialect, transitions, todo, alone=alone and not (keys or crashed or retried or lingering))
    if lingering:
        yield from permits.keep(dialect, [permits.Body(one.job_id, one.fence) for one in lingering])
    for write, group in writes:
        answers = yield from write([transitions[i] for i in group])
        for index, answer in zip(group, answers, strict=True):
            won[index] = answer
    # Lanes of targets that are not known here are listed, so that they can be given up; others are not.
    moved = [transitions[i].job_id for i in todo if won[i] and transitions[i].lane and transitions[i].move is _PASSED]
    if moved:
        yield Step("insert_lanes", {"ids": dialect.ids(moved)})
    if crashed:
        yield from _charge_crashes(dialect, [transitions[i] for i in crashed if won[i]])
    freed = [transitions[i].job_id for i in keys if won[i]]
    if freed:
        yield Step("delete_live_keys", {"ids": dialect.ids(freed)})
    return won


Write = Callable[[Sequence[Transition]], Plan[list[bool]]]
"""Writes transitions of one kind, and returns which ones held their fence."""

_PASSED: Final = Move.RELEASE
FINISHED: Final = frozenset({Move.SUCCEED, Move.FAIL, Move.CANCEL})


def _by_write(
    dialect: Dialect, transitions: Sequence[Transition], todo: Sequence[int], *, alone: bool
) -> list[tuple[Write, Sequence[int]]]:
    """Group transitions by the write of their move.

    A flush in which all have ended is one write, which may be `alone`.
    """
    present = {transitions[i].move for i in todo}
    if present <= FINISHED:
        return [(partial(dialect.finish, alone=alone), todo)] if todo else []
    writes: dict[Write, frozenset[Move]] = {
        partial(dialect.finish, alone=False): FINISHED,
        dialect.requeue: frozenset({Move.REQUEUE}),
        dialect.release: frozenset({Move.RELEASE}),
        partial(_park, dialect): frozenset({Move.PARK}),
    }
    unknown = present.difference(*writes.values())
    assert not unknown, f"nothing writes these moves: {sorted(unknown)}"
    groups = [(write, [i for i in todo if transitions[i].move in moves]) for write, moves in writes.items()]
    return [(write, group) for write, group in groups if group]


def _park(dialect: Dialect, transitions: Sequence[Transition]) -> Plan[list[bool]]:
    """Have jobs wait again for their signals, until after the delay."""
    won = yield from dialect.requeue(transitions)
    parked = [transition.job_id for transition, held in zip(transitions, won, strict=True) if held]
    if parked:
        yield from signal_waits.park_again(dialect, parked)
    return won


def _charge_crashes(dialect: Dialect, won: Sequence[Transition]) -> Plan[None]:
    """Count crashes; rare, and so separate from the statements of every outcome."""
    back = [transition.job_id for transition in won if not transition.terminal]
    over = [transition.job_id for transition in won if transition.terminal]
    if back:
        yield Step("charge_crash", {"ids": dialect.ids(back)})
    if over:
        yield Step("charge_last_crash", {"ids": dialect.ids(over)})
