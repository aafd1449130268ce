"""Loads batches: children are stored in committed chunks, each of which advances the position in the iterable with it.

What is stored of a batch is the number of its children, so a loader that was cut off goes on behind the last committed
item, and two loaders cannot both store the same one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

from windlass.domain.batch import BATCH_TARGET, BatchState, LoadState
from windlass.domain.dependencies import GroupCounts
from windlass.domain.identity import parse_job_id
from windlass.domain.job import NewJob, SubmittedJob
from windlass.domain.options import UNSET
from windlass.domain.states import TERMINAL, JobStatus
from windlass.errors import InvalidOptionError, JobNotFoundError, JobStateError
from windlass.runtime.failpoints import reached
from windlass.runtime.verbs import Verb, off_loop
from windlass.stores.plans import batches, reads
from windlass.submission.batch import Batch
from windlass.submission.batch_encoder import BatchEncoder, ChildRows
from windlass.submission.batch_handle import BatchHandle
from windlass.submission.cascades import carry_out
from windlass.submission.group_commit import levels_of
from windlass.submission.submitter import SubmissionParts, check_resources, single_calls, store_rows


class BatchLoader:
    """Stores the batches of one application."""

    def __init__(self, encoder: BatchEncoder, parts: Callable[[], SubmissionParts]) -> None:
        self._encoder = encoder
        self._parts = parts
        """Returns the parts of the current store, which `windlass.testing` exchanges."""

    def load(self, batch: Batch, resume: UUID | str | None) -> Verb[BatchHandle]:
        """Store a batch and all of its children, or resume one that is still open."""
        parts = self._parts()
        self._encoder.children(batch, "")  # refused before anything is stored
        if not isinstance(batch.items, Iterable):
            yield _refuse, _accept, (0,)
        if resume is None:
            batch_id, state = yield from self._begin(parts, batch)
        else:
            batch_id = parse_job_id(resume)
            yield from parts.authorization.check("get", batch_id)
            state = yield from parts.access.read(batches.state, batch_id)
            if state is None:
                state = yield from _archived(parts, batch_id)
        if state is not None and (state.status in TERMINAL or state.counts.loaded != LoadState.OPEN):
            return BatchHandle(SubmittedJob(batch_id, duplicate=True), parts.batch_verbs)
        load = _Load(parts, batch, self._encoder.children(batch, batch_id), batch_id)
        yield from load.run(0 if state is None else state.counts.total)
        if parts.inline is not None:
            yield parts.inline.run, parts.inline.arun, ()
        return BatchHandle(SubmittedJob(batch_id), parts.batch_verbs)

    def _begin(self, parts: SubmissionParts, batch: Batch) -> Verb[tuple[str, BatchState | None]]:
        """Store the batch and what follows it; return an earlier one with the same key as it is now."""
        rows = self._encoder.rows(batch)
        flows = self._encoder.flows_of(batch)
        yield from parts.authorization.check_calls(single_calls([*flows, self._encoder.call_of(batch)]))
        (submitted,) = yield from store_rows(parts, rows)
        if not submitted.duplicate:
            return submitted.job_id, None
        state = yield from parts.access.read(batches.state, submitted.job_id)
        if state is None:
            state = yield from _earlier(parts, submitted.job_id, batch)
        elif not (yield from _has_key_of(parts, submitted.job_id, batch)):
            state = state._replace(counts=state.counts._replace(loaded=LoadState.DONE))  # its items may be others
        return submitted.job_id, state


def _has_key_of(parts: SubmissionParts, batch_id: str, batch: Batch) -> Verb[bool]:
    """Return whether an earlier batch has the same idempotency key, and not only the same business key."""
    key = batch.options.idempotency_key
    if key is UNSET or key is None:
        return False
    stored = yield from parts.access.read(reads.get, batch_id)
    return stored is not None and stored.job["idempotency_key"] == key


def _earlier(parts: SubmissionParts, batch_id: str, batch: Batch) -> Verb[BatchState]:
    """Return an earlier batch that is archived or purged; raise if the key belongs to another job."""
    found = yield from parts.access.read(reads.outcomes, [batch_id])
    if found and found[0].target != BATCH_TARGET:
        raise InvalidOptionError(
            f"batch {batch.name!r} has the key of job {batch_id}, which is no batch but {found[0].target}; use another"
        )
    status = found[0].status if found else JobStatus.CANCELED  # purged: only its key is left
    return BatchState(batch_id, GroupCounts(0, 0, 0), status, None, 0)


def _archived(parts: SubmissionParts, batch_id: str) -> Verb[BatchState]:
    """Return an archived batch; raise if there is none."""
    found = yield from parts.access.read(reads.outcomes, [batch_id])
    if not found or found[0].target != BATCH_TARGET:
        raise JobNotFoundError(UUID(batch_id))
    return BatchState(batch_id, GroupCounts(0, 0, 0), found[0].status, None, 0)


class ItemSource(Protocol):
    """The items of a batch."""

    def take(self, count: int) -> Verb[list[Any]]:
        """Return the next items; fewer than `count` if there are no more."""
        ...


class _Items:
    """Items of an iterable; read on a thread for callers that await."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items
        self._iterator: Iterator[Any] | None = None

    def take(self, count: int) -> Verb[list[Any]]:
        return (yield from off_loop(self._take, count))

    def _take(self, count: int) -> list[Any]:
        if self._iterator is None:
            self._iterator = iter(self._items)
        return list(islice(self._iterator, count))


class _AsyncItems:
    """Items of an async iterable."""

    def __init__(self, items: AsyncIterable[Any]) -> None:
        self._items = items
        self._iterator: AsyncIterator[Any] | None = None

    def take(self, count: int) -> Verb[list[Any]]:
        found: list[Any] = yield _refuse, self._take, (count,)
        return found

    async def _take(self, count: int) -> list[Any]:
        if self._iterator is None:
            self._iterator = aiter(self._items)
        found: list[Any] = []
        while len(found) < count:
            try:
                found.append(await anext(self._iterator))
            except StopAsyncIteration:
                break
        return found


async def _accept(count: int) -> list[Any]:
    del count
    return []


def _refuse(count: int) -> list[Any]:
    del count
    raise InvalidOptionError("the items are an async iterable; await aenqueue() instead")


class _Load:
    """One run of a loader."""

    def __init__(self, parts: SubmissionParts, batch: Batch, children: ChildRows, batch_id: str) -> None:
        self._parts = parts
        self._children = children
        self._size = batch.chunk_size
        self._batch_id = batch_id
        items = batch.items
        self._items: ItemSource = _Items(items) if isinstance(items, Iterable) else _AsyncItems(items)
        self._seen = 0
        """Number of items that are stored."""

    def run(self, stored: int) -> Verb[None]:
        """Skip what is stored, and store the rest."""
        self._seen = stored
        try:
            yield from self._skip(stored)
            while items := (yield from self._items.take(self._size)):
                yield from self._store(items)
                if len(items) < self._size:
                    break
            yield from self._finish()
        except JobStateError:  # it describes what happened
            raise
        except BaseException as error:
            error.add_note(
                f"batch {self._batch_id} stays open: {self._seen:,} items are stored, and run. To go on behind them, "
                f"enqueue it again with the same idempotency_key, or with .enqueue(resume={self._batch_id!r}); to give "
                f"it up, app.cancel({self._batch_id!r})"
            )
            raise

    def _skip(self, count: int) -> Verb[None]:
        while count > 0:
            skipped = yield from self._items.take(min(count, self._size))
            if not skipped:
                raise JobStateError(
                    UUID(self._batch_id),
                    f"{self._seen:,} items are stored, but the items given now end {count:,} before that; go on with "
                    "the same items in the same order",
                )
            count -= len(skipped)

    def _store(self, items: list[Any]) -> Verb[None]:
        parts = self._parts
        rows: list[NewJob] = yield from off_loop(self._children.rows, items)
        if parts.authorization.is_asked:
            yield from parts.authorization.check_calls([self._children.call(item) for item in items])
        yield from check_resources(parts, rows[:1])
        levels = levels_of(rows[:1])
        chunk = batches.Chunk(self._batch_id, self._seen, _loader(), rows)

        def store(new_queues: list[str], notification: str | None) -> Verb[None]:
            return parts.access.run(batches.store_chunk, chunk, new_queues, notification)

        yield from parts.commits.announced(levels, store)
        self._seen += len(rows)
        reached("batch.chunk_after_commit")
        parts.local_node.new_work(levels)

    def _finish(self) -> Verb[None]:
        parts = self._parts
        end = batches.Chunk(self._batch_id, self._seen, _loader(), ())
        effects = yield from parts.access.run(batches.finish_loading, end, parts.follow_ups)
        parts.publish((), effects)
        yield from carry_out(parts.access, parts.publish, effects.unfinished, parts.follow_ups)


def _loader() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"
