"""The bodies of expansions, transformations and reductions: iterated on one thread, or on the loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterable, Callable
from typing import Any, NamedTuple

from windlass.context import EndAttempt
from windlass.domain.execution import ItemStatus
from windlass.errors import StopJob
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.pipelines.definition import PipelineStep
from windlass.pipelines.emitter import Chunk, Emitter, Position
from windlass.pipelines.running_item import RunningItem
from windlass.pipelines.step_context import StepContext
from windlass.runtime.failpoints import reached
from windlass.runtime.middleware import around
from windlass.stores.plans.executions import Checkpoint, Written


class ChunkStore(NamedTuple):
    """How the chunks of an expansion are stored."""

    write: Callable[[Chunk], Checkpoint]
    """Makes the write of a chunk."""
    took: Callable[[Checkpoint, Written], None]
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
        write = self._begin()
        self._end(write, self._claimed.runtime.checkpoint_blocking(write))

    async def store(self) -> None:
        """Store the present chunk; if the step is cut off meanwhile, only after that: what is stored must be known."""
        write = self._begin()
        task = asyncio.ensure_future(self._claimed.runtime.checkpoint(write))
        try:
            answer = await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                self._chunks.took(write, task.result())
            raise
        self._end(write, answer)

    def _begin(self) -> Checkpoint:
        reached("expand.chunk_before_commit")
        self._check()
        return self._chunks.write(self._emitter.take())

    def _end(self, write: Checkpoint, answer: Written) -> None:
        reached("expand.chunk_after_commit")
        self._check()
        self._chunks.took(write, answer)
        claim = self._claimed.context
        if answer.paused or answer.failing is not None or claim.canceled or claim.draining:
            raise EndAttempt("advanced")  # what is stored is dropped when the body runs again

    def _check(self) -> None:
        """Raise on a thread whose time is over: the claim has gone on without it."""
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


async def expand_item(
    claimed: ClaimedExecution, step: PipelineStep, context: StepContext, item: RunningItem, stage: int, end: int
) -> None:
    """Expand one item of a stage into others, which lie behind it in the order of paths."""
    job = (claimed.context.claim.job_id, claimed.context.claim.fence, claimed.state.id)
    born = (ItemStatus.READY, item.cursor + 1) if item.cursor + 1 < end else (ItemStatus.DONE, end)
    place = (claimed.state.id, stage, item.path)
    position = Position(item.emitted, item.last_hash)
    emitter = Emitter(claimed.definition, claimed.values, step, place, position, lambda value: born)
    seen: Counter[str] = Counter()

    def write(chunk: Chunk, status: ItemStatus = ItemStatus.READY) -> Checkpoint:
        given, context.rejected = context.rejected, []
        rejects = claimed.rejects.of_stream(step, item.attempt, given, seen)
        changed = item.write(claimed.state.id, stage, status)
        changed = changed._replace(emitted=chunk.position.emitted, last_hash=chunk.position.last_hash)
        return Checkpoint(*job, items=(changed,), new_items=chunk.items, rejects=rejects)

    def took(write: Checkpoint, answer: Written) -> None:
        (changed,) = write.items
        item.emitted, item.last_hash = changed.emitted, changed.last_hash
        item.written()

    await emit(claimed, step, context, item.value, emitter, ChunkStore(write, took))
    last = write(emitter.take(), ItemStatus.EXPANDED)
    took(last, await claimed.runtime.checkpoint(last))
