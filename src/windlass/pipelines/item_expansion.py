"""The bodies of expansions, transformations and reductions: iterated on one thread, or on the loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterable, Callable
from typing import Any, NamedTuple

from windlass.domain.attempt_end import EndAttempt
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

    def begin() -> Checkpoint:
        reached("expand.chunk_before_commit")
        if context.over:
            raise StopJob("the step is over: it ran longer than its timeout")
        return chunks.write(emitter.take())

    def end(write: Checkpoint, answer: Written) -> None:
        reached("expand.chunk_after_commit")
        if context.over:  # the claim has gone on without this thread
            raise StopJob("the step is over: it ran longer than its timeout")
        chunks.took(write, answer)
        if answer.paused or answer.failing is not None or context.canceled or claimed.context.draining:
            raise EndAttempt("advanced")  # what is stored is dropped when the body runs again

    def body(*args: Any, **kwargs: Any) -> None:
        for value in step.function(*args, **kwargs):
            if emitter.add(value):
                write = begin()
                end(write, claimed.runtime.checkpoint_blocking(write))
        emitter.check_end()

    async def finished(write: Checkpoint) -> Written:
        """Wait for a write even if the step is cut off meanwhile: what is stored must be known."""
        task = asyncio.ensure_future(claimed.runtime.checkpoint(write))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                chunks.took(write, task.result())
            raise

    async def abody(*args: Any, **kwargs: Any) -> None:
        produced = step.function(*args, **kwargs)
        if step.is_coroutine:
            produced = await produced
        async for value in produced if isinstance(produced, AsyncIterable) else _each(produced):
            if emitter.add(value):
                write = begin()
                end(write, await finished(write))
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
