"""Plans for operations: writes that belong to a verb or to a job's end, and are too many for one transaction.

An operation is a row that stores the remaining work. Each transaction carries out a part and stores the rest, so any
process that finds it idle after a crash continues it. `flows.carry_on` carries out those of cascades and releases;
operations on the children of a batch walk along the ids of the children.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.batch import BATCH_TARGET, BatchProgress, LoadState
from windlass.domain.dependencies import MemberChange
from windlass.domain.ended import NO_EFFECTS, Effects, Ended, Unfinished
from windlass.domain.identity import FIRST_ID, new_job_id
from windlass.domain.states import JobStatus, Move
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.ending import FollowUps
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import batch_ends, batches, flow_retention, flow_revival, flows, moves
from windlass.stores.plans.flow_rows import CANCEL_CHILDREN
from windlass.stores.plans.moves import Steered
from windlass.stores.plans.work_notices import notify_of_work

WINDOW: Final = 1_000
"""Number of children that one transaction looks at."""
PAUSE: Final = "pause_batch"
RESUME: Final = "resume_batch"
RETRY_FAILED: Final = "retry_failed"


class Carried(NamedTuple):
    """What one transaction has carried out."""

    ended: Sequence[Ended] = ()
    effects: Effects = NO_EFFECTS


class Part(NamedTuple):
    """The next part of an operation on the children of a batch."""

    dialect: Dialect
    batch_id: str
    children: Sequence[tuple[str, str | None, str | None]]
    """Ids, and states as live and as ended jobs."""
    follow_ups: FollowUps

    def live(self, *states: JobStatus) -> list[str]:
        """Return the children that are live in one of these states."""
        return [job for job, status, _ in self.children if status in states]


def carry_on(dialect: Dialect, unfinished: Unfinished, follow_ups: FollowUps) -> Plan[Carried]:
    """Write the next part of the work of earlier transactions; the answer shows whether more remains."""
    kinds: dict[str, str] = {}
    if unfinished.operations:
        kinds = dict((yield Step("operation_kinds", {"ids": dialect.ids(sorted(unfinished.operations))})))
    on_children = sorted(operation for operation, kind in kinds.items() if kind in _STEPS)
    others = Unfinished(unfinished.groups, frozenset(kinds) - set(on_children))
    carried = Carried()
    if others:
        carried = Carried((), (yield from flows.carry_on(dialect, others, follow_ups)))
    for operation in on_children:
        part = yield from _carry_on_children(dialect, operation, follow_ups)
        carried = Carried([*carried.ended, *part.ended], carried.effects | part.effects)
    return carried


def _carry_on_children(dialect: Dialect, operation: str, follow_ups: FollowUps) -> Plan[Carried]:
    rows = yield Step("lock_operations", {"ids": dialect.ids([operation])})
    if not rows:  # another process carries it out
        return Carried()
    ((_, kind, detail),) = rows
    batch, after = _detail_of(detail)
    children = (yield Step("children", {"batch": batch, "after": after}, literals={"window": WINDOW})) if batch else []
    step = _STEPS[kind]
    part = Part(dialect, batch, children, follow_ups)
    if batch and not (yield from step.applies(part)):
        children = part.children[:0]
    carried = (yield from step.carry_out(part)) if children else Carried()
    reached("settle.before_commit")
    if len(children) == WINDOW:
        yield Step("save_operation", {"id": operation, "kind": kind, "detail": json_text([batch, children[-1][0]])})
        more = Effects(unfinished=Unfinished(operations=frozenset({operation})))
        return carried._replace(effects=carried.effects | more)
    yield Step("delete_operation", {"id": operation})
    effects = yield from step.finish(part)
    return carried._replace(effects=carried.effects | effects)


def _detail_of(detail: str) -> tuple[str, str]:
    try:
        return msgspec.json.decode(detail, type=tuple[str, str])
    except (msgspec.MsgspecError, ValueError, RecursionError):  # damaged: there is nothing to continue
        return "", FIRST_ID


def _cancel(part: Part) -> Plan[Carried]:
    live = part.live(JobStatus.PENDING, JobStatus.RUNNING, JobStatus.PAUSED, JobStatus.WAITING)
    if not live:
        return Carried()
    moved = yield from moves.cancel(part.dialect, live, part.follow_ups)
    return Carried(moved.ended, moved.effects)


def _pause(part: Part) -> Plan[Carried]:
    live = yield from moves.lock_live(part.dialect, part.live(JobStatus.PENDING), Move.PAUSE)
    if live:
        yield Step("pause_live", {"ids": part.dialect.ids([job.job_id for job in live])})
    return Carried()


def _resume(part: Part) -> Plan[Carried]:
    live = yield from moves.lock_live(part.dialect, part.live(JobStatus.PAUSED), Move.RESUME)
    if not live:
        return Carried()
    yield Step("resume_live", {"ids": part.dialect.ids([job.job_id for job in live])})
    yield from notify_of_work(part.dialect, {(job.queue, job.priority) for job in live})
    return Carried((), Effects(work=frozenset((job.queue, job.priority) for job in live)))


def _retry(part: Part) -> Plan[Carried]:
    failed = [job for job, _, status in part.children if status == JobStatus.FAILED]
    if not failed:
        return Carried()
    moved = yield from moves.retry(part.dialect, failed, part.follow_ups)
    (status,) = yield Step("lock_batch", {"id": part.batch_id})
    if moved.ended and status == JobStatus.PAUSED:
        yield Step("pause_live", {"ids": part.dialect.ids([job.job_id for job in moved.ended])})
    return Carried(moved.ended, moved.effects)


def _close(part: Part) -> Plan[Effects]:
    """Nothing is added to a batch that was canceled; its counts are kept for the archive."""
    yield Step("close_batch", {"id": part.batch_id})
    yield from part.dialect.count_members([MemberChange(part.batch_id, 0, 0)], wait=True)
    found = yield from batches.state(part.dialect, part.batch_id)
    if found is not None:
        result = msgspec.json.encode(BatchProgress.of(found.counts)).decode()
        yield Step("keep_progress", {"id": part.batch_id, "result": result})
    return NO_EFFECTS


def _end_revival(part: Part) -> Plan[Effects]:
    loaded = {"id": part.batch_id, "before": LoadState.REVIVING.value, "loaded": LoadState.DONE.value}
    yield Step("set_loaded", loaded)
    return (yield from flows.carry_on(part.dialect, Unfinished(frozenset({part.batch_id})), part.follow_ups))


def _nothing(part: Part) -> Plan[Effects]:
    del part
    yield from ()
    return NO_EFFECTS


def _always(part: Part) -> Plan[bool]:
    del part
    yield from ()
    return True


def _while_in(*states: JobStatus) -> Callable[[Part], Plan[bool]]:
    def applies(part: Part) -> Plan[bool]:
        row = yield Step("lock_batch", {"id": part.batch_id})
        return row is not None and row[0] in states

    return applies


class _Operation(NamedTuple):
    carry_out: Callable[[Part], Plan[Carried]]
    finish: Callable[[Part], Plan[Effects]] = _nothing
    """Called behind the last part."""
    applies: Callable[[Part], Plan[bool]] = _always
    """Whether it is still wanted: a pause ends where a resume has come, a retry where a cancel has."""


_STEPS: Final[dict[str, _Operation]] = {
    CANCEL_CHILDREN: _Operation(_cancel, _close),
    PAUSE: _Operation(_pause, applies=_while_in(JobStatus.PAUSED)),
    RESUME: _Operation(_resume, applies=_while_in(JobStatus.PENDING)),
    RETRY_FAILED: _Operation(_retry, _end_revival, _while_in(JobStatus.PENDING, JobStatus.PAUSED)),
}


class SteeredJobs(NamedTuple):
    """Jobs that were paused or resumed, and the remaining work on children of batches among them."""

    jobs: list[Steered]
    unfinished: Unfinished


def pause(dialect: Dialect, ids: Sequence[str]) -> Plan[SteeredJobs]:
    """Pause jobs; the waiting children of batches among them by operations."""
    return (yield from _with_children(dialect, (yield from moves.pause(dialect, ids)), PAUSE))


def resume(dialect: Dialect, ids: Sequence[str]) -> Plan[SteeredJobs]:
    """Resume jobs; the paused children of batches among them by operations."""
    return (yield from _with_children(dialect, (yield from moves.resume(dialect, ids)), RESUME))


def _with_children(dialect: Dialect, moved: list[Steered], kind: str) -> Plan[SteeredJobs]:
    operations: list[str] = []
    for job in moved:
        if job.target == BATCH_TARGET:
            operations.append((yield from _begin(dialect, kind, job.job_id)))
    return SteeredJobs(moved, Unfinished(operations=frozenset(operations)))


def retry_failed(dialect: Dialect, batch_id: str) -> Plan[Unfinished | None]:
    """Begin to start the failed children of a batch over; None if there are none, or it is no batch, or is loaded.

    The batch is live again from here on, and does not end before all of them are started over.
    """
    yield from flow_retention.lock_of(dialect, [batch_id])  # or it would be archived meanwhile
    yield from dialect.count_members([MemberChange(batch_id, 0, 0)], wait=True)
    found = yield from batches.state(dialect, batch_id)
    if found is None or found.status is JobStatus.CANCELED or not found.counts.failed:
        return None
    loaded = {"id": batch_id, "before": LoadState.DONE.value, "loaded": LoadState.REVIVING.value}
    if (yield Step("set_loaded", loaded)) != 1:
        return None
    yield from batch_ends.reopen(dialect, [batch_id])
    yield from flow_revival.revive_behind(dialect, batch_id)  # here: a key that another job holds refuses all of it
    operation = yield from _begin(dialect, RETRY_FAILED, batch_id)
    return Unfinished(operations=frozenset({operation}))


def _begin(dialect: Dialect, kind: str, batch: str) -> Plan[str]:
    operation = new_job_id()
    yield Step("save_operation", {"id": operation, "kind": kind, "detail": json_text([batch, FIRST_ID])})
    return operation
