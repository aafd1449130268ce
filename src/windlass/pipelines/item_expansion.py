"""The bodies of expansions, transformations and reductions: iterated on one thread, or on the loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any, NamedTuple

from windlass.domain.attempt_end import EndAttempt
from windlass.domain.execution_items import ItemStatus, NewItem, NewReject
from windlass.errors import StopJob
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.pipelines.claimed_item import ClaimedItem
from windlass.pipelines.definition import PipelineStep
from windlass.pipelines.emitter import Emitter, ItemChunk, Position
from windlass.pipelines.step_context import StepContext
from windlass.runtime.failpoints import reached
from windlass.runtime.middleware import around
from windlass.stores.plans.executions import Checkpoint, CheckpointAnswer


class ChunkStore(NamedTuple):
    """How the chunks of an expansion are stored."""

    rejects: Callable[[], Sequence[NewReject]]
    """Returns what the body has rejected since the chunk before."""
    write: Callable[[ItemChunk, Sequence[NewReject]], Checkpoint]
    """Makes the write of a chunk."""
    record: Callable[[Checkpoint, CheckpointAnswer], None]
    """Notes a write that was committed."""


class _Expansion:
    """One run of the body of a step that gives many items."""

    def __init__(self, claimed: ClaimedExecution, context: StepContext, emitter: Emitter, chunks: ChunkStore) -> None:
        self._claimed = claimed
        self._context = context
        self._emitter = emitter
        self._chunks = chunks

    def store_blocking(self) -> None:
        """Store the present chunk, on a thread."""
        rejects = self._chunks.rejects()
        self._claimed.sink.offer_blocking(rejects)
        write = self._begin(rejects)
        self._end(write, self._claimed.checkpoint_blocking(write))

    async def store(self) -> None:
        """Store the present chunk; if the step is cut off meanwhile, only after that: what is stored must be known."""
        rejects = self._chunks.rejects()
        await self._claimed.sink.offer(rejects)
        write = self._begin(rejects)
        task = asyncio.ensure_future(self._claimed.checkpoint(write))
        try:
            answer = await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                self._chunks.record(write, task.result())
            raise
        self._end(write, answer)

    def _begin(self, rejects: Sequence[NewReject]) -> Checkpoint:
        reached("expand.chunk_before_commit")
        self._check()
        return self._chunks.write(self._emitter.take(), rejects)

    def _end(self, write: Checkpoint, answer: CheckpointAnswer) -> None:
        reached("expand.chunk_after_commit")
        self._check()
        self._chunks.record(write, answer)
        claim = self._claimed.context
        if answer.paused or answer.failing is not None or claim.canceled or claim.draining:
            raise EndAttempt("advanced")  # what is stored is dropped when the body runs again

    def _check(self) -> None:
        """Raise on a thread that has timed out: the claim has continued without it."""
        if self._context.over:
            raise StopJob(f"step {self._context.step!r} is over: it ran longer than its timeout")


async def emit(
    claimed: ClaimedExecution,
    step: PipelineStep,
    context: StepContext,
    given: Any,
    emitter: Emitter,
    chunks: ChunkStore,
) -> None:
    """Run the body of a step that gives many items, and store them in chunks; the last one is left in the emitter.

    A body that is no coroutine runs to its end on one thread: what it holds open may know its thread.
    """
    expansion = _Expansion(claimed, context, emitter, chunks)

    def body(*args: Any, **kwargs: Any) -> None:
        for value in step.function(*args, **kwargs):
            if emitter.add(value):
                expansion.store_blocking()
        emitter.check_end()

    async def abody(*args: Any, **kwargs: Any) -> None:
        produced = step.function(*args, **kwargs)
        if step.is_coroutine:
            produced = await produced
        async for value in produced if isinstance(produced, AsyncIterable) else _each(produced):
            if emitter.add(value):
                await expansion.store()
        emitter.check_end()

    function: Callable[..., Any] = abody if step.is_async else body
    if claimed.runtime.parts.middleware:
        function = around(function, claimed.runtime.parts.middleware, context, is_coroutine=step.is_async)
    await claimed.runtime.calls.run(
        step, context, claimed.definition.target, function, *((given,) if step.has_input else ())
    )


async def _each(produced: Any) -> Any:
    for value in produced:
        yield value


class ItemExpansion:
    """Expands one item of a stage into others, which lie behind it in the order of paths."""

    def __init__(
        self, claimed: ClaimedExecution, context: StepContext, item: ClaimedItem, target: tuple[PipelineStep, int, int]
    ) -> None:
        self._claimed = claimed
        self._context = context
        self._item = item
        self._step, self._stage, self._end = target
        self._emitter: Emitter | None = None
        self._seen: Counter[str] = Counter()

    async def run(self) -> None:
        """Run the body, and store what it gives."""
        claimed, item, end = self._claimed, self._item, self._end
        born = (ItemStatus.READY, item.cursor + 1) if item.cursor + 1 < end else (ItemStatus.DONE, end)
        origin = (claimed.state.id, self._stage, item.path)
        position = Position(item.emitted, item.last_hash)
        self._emitter = Emitter(claimed.definition, claimed.values, self._step, origin, position, lambda value: born)
        chunks = ChunkStore(self.taken_rejects, self._write, self._record)
        await emit(claimed, self._step, self._context, item.value, self._emitter, chunks)
        rejects = self.taken_rejects()
        await claimed.sink.offer(rejects)
        last = self._write(self._emitter.take(), rejects, ItemStatus.EXPANDED)
        self._record(last, await claimed.checkpoint(last))

    def _write(
        self, chunk: ItemChunk, rejects: Sequence[NewReject], status: ItemStatus = ItemStatus.READY
    ) -> Checkpoint:
        claim, item = self._claimed.context.claim, self._item
        changed = item.write(self._claimed.state.id, self._stage, status)
        changed = changed._replace(emitted=chunk.position.emitted, last_hash=chunk.position.last_hash)
        job = (claim.job_id, claim.fence, self._claimed.state.id)
        return Checkpoint(*job, items=(changed,), new_items=chunk.items, rejects=rejects)

    def _record(self, write: Checkpoint, answer: CheckpointAnswer) -> None:
        """Continue with what is certainly stored: a refused chunk is emitted again."""
        del answer
        (changed,) = write.items
        self._item.emitted, self._item.last_hash = changed.emitted, changed.last_hash
        self._item.written()

    def taken_rejects(self) -> list[NewReject]:
        """Return what the body has rejected since the last time."""
        given, self._context.rejected = self._context.rejected, []
        return self._claimed.rejects.of_stream(self._step, self._item.attempt, given, self._seen)

    def unstored(self) -> list[NewItem]:
        """Return what a failed body has given that is not stored yet, to be kept."""
        if self._emitter is None:
            return []
        chunk = self._emitter.take()
        self._item.emitted, self._item.last_hash = chunk.position
        return chunk.items
