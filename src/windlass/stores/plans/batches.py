"""Plans that load batches and read their progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from windlass.domain.batch import BatchState, LoadState
from windlass.domain.dependencies import GroupCounts
from windlass.domain.ended import NO_EFFECTS, Effects, Unfinished
from windlass.domain.job import NewJob
from windlass.domain.states import TERMINAL, JobStatus
from windlass.domain.tags import tags_of
from windlass.errors import JobStateError
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import flows

_COUNTS = len(GroupCounts._fields)


class Chunk(NamedTuple):
    """Children to be stored behind those that a loader has seen stored."""

    batch_id: str
    seen: int
    loader: str
    """The process that stores them, for the error of another one."""
    rows: Sequence[NewJob]


def state(dialect: Dialect, batch_id: str, *, autocommit: bool = False) -> Plan[BatchState | None]:
    """Return a batch with its counts; None if there is none, or it is archived."""
    del dialect
    row = yield Step("batch_state", {"id": batch_id}, autocommit=autocommit)
    if row is None or row[_COUNTS] is None:
        return None
    return BatchState(batch_id, GroupCounts(*row[:_COUNTS]), JobStatus(row[_COUNTS]), *row[_COUNTS + 1 :])


def store_chunk(dialect: Dialect, chunk: Chunk, new_queues: Sequence[str], notification: str | None) -> Plan[None]:
    """Store children of a batch that is still loaded; those of a paused batch are PAUSED.

    Raises `JobStateError` if the batch has ended or another loader has stored children meanwhile.
    """
    status = yield from _lock_open(dialect, chunk)
    if new_queues:
        yield Step("insert_queue", rows=[{"name": name} for name in new_queues])
    yield from dialect.insert_jobs(chunk.rows, alone=False, notification=notification)
    tags = [(tag, job.id) for job in chunk.rows for tag in tags_of(job.tags)]
    if tags:
        yield from dialect.insert_keys("insert_tags", tags)
    if status is JobStatus.PAUSED:
        yield Step("pause_live", {"ids": dialect.ids([job.id for job in chunk.rows])})
    added = {"id": chunk.batch_id, "seen": chunk.seen, "added": len(chunk.rows), "loader": chunk.loader}
    if (yield Step("extend_batch", added)) != 1:
        raise (yield from _not_open(dialect, chunk))
    reached("batch.chunk_before_commit")


def finish_loading(dialect: Dialect, chunk: Chunk, follow_ups: FollowUps = ()) -> Plan[Effects]:
    """Note that all children are stored; a batch whose children have ended, or that has none, ends here.

    It does nothing if another loader of the same items has done so.
    """
    yield Step("lock_batch", {"id": chunk.batch_id})
    found = yield from state(dialect, chunk.batch_id)
    if found is not None and _is_loaded(found, chunk.seen):
        return NO_EFFECTS
    yield from _lock_open(dialect, chunk)
    loaded = {"id": chunk.batch_id, "before": LoadState.OPEN.value, "loaded": LoadState.DONE.value}
    if (yield Step("set_loaded", loaded)) != 1:
        raise (yield from _not_open(dialect, chunk))
    reached("batch.loaded")
    return (yield from flows.carry_on(dialect, Unfinished(frozenset({chunk.batch_id})), follow_ups))


def _is_loaded(batch: BatchState, total: int) -> bool:
    """Return whether a batch has exactly so many children, and gets no more."""
    return (
        batch.counts.total == total and batch.counts.loaded != LoadState.OPEN and batch.status is not JobStatus.CANCELED
    )


def _lock_open(dialect: Dialect, chunk: Chunk) -> Plan[JobStatus]:
    """Lock a batch to which children may be added: against its cancel, its pause and other loaders."""
    row = yield Step("lock_batch", {"id": chunk.batch_id})
    found = yield from state(dialect, chunk.batch_id)
    if row is None or found is None or found.counts.loaded != LoadState.OPEN or found.counts.total != chunk.seen:
        raise (yield from _not_open(dialect, chunk))
    return JobStatus(row[0])


def _not_open(dialect: Dialect, chunk: Chunk) -> Plan[JobStateError]:
    found = yield from state(dialect, chunk.batch_id)
    by_another = found is not None and found.status is not JobStatus.CANCELED and found.counts.total > chunk.seen
    if found is None or (found.status in TERMINAL and not by_another):
        status = "gone" if found is None else found.status.value
        problem = (
            f"the batch is {status}, so nothing can be added to it; items from number {chunk.seen} on are not stored"
        )
    else:
        problem = (
            f"another loader, {found.loader or 'elsewhere'}, has stored items up to number {found.counts.total} while "
            f"this one was at {chunk.seen}; let one process load it, the other may wait for it with join()"
        )
    return JobStateError(UUID(chunk.batch_id), problem)
