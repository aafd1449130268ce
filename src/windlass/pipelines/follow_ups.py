"""What belongs to the end of jobs of pipelines, written by the transaction in which they end.

Only the main job ends an execution: a part whose item has failed for good notes the failure and wakes the main job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

import msgspec

from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.execution import FailedStep, ItemFailure, is_execution, is_part, item_failure_of
from windlass.domain.states import JobStatus, Move
from windlass.domain.transition import NO_FAILURE
from windlass.domain.transition_keys import transition_key
from windlass.pipelines.cargo import Boundary, Finished, PartEnded, PartFailed, PartParked, PartWaits
from windlass.pipelines.final_items import publish_plan
from windlass.pipelines.subscribers import Subscribers
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUp
from windlass.stores.plan import Plan
from windlass.stores.plans import execution_redrives, executions, external_waits, items, moves, rejects
from windlass.stores.plans.executions import EndedExecution

_ENDS: Final = frozenset({Move.SUCCEED, Move.FAIL, Move.GIVE_UP, Move.CANCEL})
_SUCCEEDS: Final = frozenset({Move.SUCCEED})
_REQUEUED: Final = frozenset({Move.REQUEUE})
_REVIVED: Final = frozenset({Move.RETRY})


def follow_ups(known_queues: Collection[str] = (), subscribers: Subscribers | None = None) -> tuple[FollowUp, ...]:
    """Return the follow-ups of pipelines; `subscribers` are those of this application."""
    return (
        FollowUp(_ENDS, _of_execution, _end_executions),
        *(() if subscribers is None else (FollowUp(_ENDS, subscribers.frees_room, subscribers.room_freed),)),
        FollowUp(_ENDS, _of_part, _end_parts),
        FollowUp(_REQUEUED, _has_cargo, _go_on_later),
        FollowUp(_REVIVED, _of_execution, _revive),
        # Last: subscriptions are locked after executions, and those of others are locked above.
        FollowUp(_SUCCEEDS, _publishes, partial(_publish, known_queues=known_queues, subscribers=subscribers)),
    )


def _of_execution(ended: Ended) -> bool:
    return is_execution(ended.target)


def _of_part(ended: Ended) -> bool:
    return is_part(ended.target) and not ended.in_cascade


def _has_cargo(ended: Ended) -> bool:
    return ended.cargo is not None and (_of_execution(ended) or _of_part(ended))


def _publishes(ended: Ended) -> bool:
    return isinstance(ended.cargo, Finished) and bool(ended.cargo.outgoing)


# ------------------------------------------------------------------ executions


def _publish(
    dialect: Dialect, ended: Sequence[Ended], *, known_queues: Collection[str], subscribers: Subscribers | None
) -> Plan[Effects]:
    """Hand over the last items of executions that have just succeeded."""
    outgoing = [one for job in ended if isinstance(job.cargo, Finished) for one in job.cargo.outgoing]
    return (yield from publish_plan(dialect, outgoing=outgoing, known_queues=known_queues, subscribers=subscribers))


def _end_executions(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    deliveries = yield from _store_rejects(dialect, ended)
    failed = [item for job in ended if isinstance(job.cargo, FailedStep) for item in job.cargo.items]
    if failed:
        yield from items.write(dialect, failed)
    yield from executions.finish(dialect, [_ended_execution(job) for job in ended])
    unfinished = [job.job_id for job in ended if job.move is not Move.SUCCEED]
    parts = (yield from items.live_jobs(dialect, unfinished)) if unfinished else []
    if not parts:
        return Effects(calls=deliveries) if deliveries else NO_EFFECTS
    stopped = yield from moves.cancel(dialect, parts, reason="execution_ended", parts=True)
    for execution in unfinished:
        yield from items.detach(dialect, execution)
    return Effects(canceled=tuple(job._replace(in_cascade=True) for job in stopped.ended), calls=deliveries)


def _store_rejects(dialect: Dialect, ended: Sequence[Ended]) -> Plan[tuple[Callable[[], None], ...]]:
    """Store what the last steps have rejected; return the calls that pass the new ones on after the commit."""
    ends = [job.cargo.rejects for job in ended if isinstance(job.cargo, FailedStep | Finished) if job.cargo.rejects]
    if not ends:
        return ()
    new = yield from rejects.store(dialect, [reject for end in ends for reject in end.rejects])
    return tuple(partial(end.deliver, [one for one in end.rejects if one.id in new]) for end in ends)


def _ended_execution(job: Ended) -> EndedExecution:
    failure, cargo = job.failure or NO_FAILURE, job.cargo
    status = {JobStatus.SUCCEEDED: "SUCCEEDED", JobStatus.CANCELED: "CANCELED"}.get(job.status, "FAILED")
    failed = status == "FAILED"
    return EndedExecution(
        job.job_id,
        status,
        _transition_key(job),
        failure.error_class or None if failed else None,
        failure.error or None if failed else None,
        job.fence,
        cargo.log if isinstance(cargo, FailedStep | Finished) else None,
        job.node,
    )


def _transition_key(job: Ended) -> str | None:
    """Return the key of the step that an execution ended with; None: that follows from what is stored."""
    match job.cargo:
        case FailedStep():
            return job.cargo.transition_key
        case Finished(log):
            return transition_key(job.job_id, log.step, log.attempt, "")
        case _:
            return None


def _go_on_later(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    """Write what claims have finished whose executions continue later; those that wait for nothing are due at once."""
    parked = [job for job in ended if isinstance(job.cargo, PartParked)]
    mains = [job for job in ended if isinstance(job.cargo, Boundary)]
    writes = [job.cargo.write for job in mains if isinstance(job.cargo, Boundary) and job.cargo.write is not None]
    if writes:
        yield from executions.advance(dialect, writes)
    work: frozenset[tuple[str, int]] = frozenset()
    if mains:
        work |= yield from executions.wake(dialect, [job.job_id for job in mains])
        work |= yield from _wait_outside(dialect, mains)
        paused = [job.job_id for job in mains if isinstance(job.cargo, Boundary) and job.cargo.paused]
        if paused:
            work |= yield from executions.wake_unpaused(dialect, paused)
    for ordered in (False, True):
        waiting = [job.job_id for job in ended if job.cargo == PartWaits(ordered) and isinstance(job.cargo, PartWaits)]
        if waiting:
            work |= yield from external_waits.wake_ready(dialect, (), waiting, ordered=ordered)
    if parked:
        held = {job.cargo.execution_id for job in parked if isinstance(job.cargo, PartParked)}
        yield from executions.lock_mains(dialect, held)
        work |= yield from items.wake(dialect, [job.job_id for job in parked])
    parks = any(isinstance(job.cargo, Boundary) and job.cargo.outside == "value" for job in mains)
    return Effects(work=work, calls=(partial(reached, "wait.after_park"),) if parks else ())


def _wait_outside(dialect: Dialect, mains: Sequence[Ended]) -> Plan[frozenset[tuple[str, int]]]:
    """Store the waits of executions that have parked; those that were answered meanwhile are due at once."""
    cargos = [(job.job_id, job.cargo) for job in mains if isinstance(job.cargo, Boundary) and job.cargo.outside]
    if not cargos:
        return frozenset()
    waits = [wait for _, cargo in cargos if cargo.write is not None for wait in cargo.write.waits]
    if waits:
        yield from external_waits.open_waits(dialect, waits)
    values = [job for job, cargo in cargos if cargo.outside == "value"]
    work = (yield from external_waits.park_values(dialect, values)) if values else frozenset()
    for kind in ("items", "ordered"):
        of_items = [job for job, cargo in cargos if cargo.outside == kind]
        if of_items:
            work |= yield from external_waits.wake_ready(dialect, of_items, (), ordered=kind == "ordered")
    return work


def _revive(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    """Open executions again whose dead letters are started over."""
    yield from execution_redrives.reopen(dialect, [job.job_id for job in ended], reset=True)
    return NO_EFFECTS


# ------------------------------------------------------------------ parts


def _end_parts(dialect: Dialect, ended: Sequence[Ended]) -> Plan[Effects]:
    """Give jobs to the parts that wait, or note failures; wake executions whose last part has ended."""
    found = yield from items.parts_of_ended(dialect, [job.job_id for job in ended])
    if not found:
        return NO_EFFECTS
    mains = yield from executions.lock_mains(dialect, {part.execution_id for part in found.values()})
    parts = {job: part for job, part in found.items() if part.execution_id in mains}
    done = [job.job_id for job in ended if isinstance(job.cargo, PartEnded) and job.job_id in parts]
    if done:
        yield from items.end(dialect, done)
    unfinished = sorted(parts.keys() - set(done))
    if unfinished:  # none may be left with a job that has ended: it would never get another
        yield from items.strand(dialect, unfinished)
    failed = [item for job in ended if isinstance(job.cargo, PartFailed) for item in job.cargo.items]
    if failed:
        yield from items.write(dialect, failed)
    for job in ended:
        failing = _failing(job, parts[job.job_id]) if job.job_id in parts else None
        if failing is not None:
            text = msgspec.json.encode(failing).decode()
            yield from executions.note_failing(dialect, parts[job.job_id].execution_id, text)
            reached("failing.before_commit")
    releases = [job.cargo.release for job in ended if isinstance(job.cargo, PartEnded) and job.job_id in parts]
    work = yield from items.release(dialect, releases)
    work |= yield from executions.wake(dialect, mains)
    reached("part.before_commit")
    return Effects(work=work)


def _failing(job: Ended, part: items.StoredPart) -> ItemFailure | None:
    """Return the failure that a part ends its execution with; a canceled or lost one has none of its own."""
    if isinstance(job.cargo, PartFailed):
        return job.cargo.failing
    if job.move in (Move.FAIL, Move.GIVE_UP):
        return item_failure_of(job.reason or "worker_lost", job.failure, part.segment, part.trying or "", 1)
    return None
