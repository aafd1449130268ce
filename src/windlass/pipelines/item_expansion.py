"""The bodies of expansions, transformations and reductions: iterated on one thread, or on the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any, NamedTuple

from windlass.context import EndAttempt
from windlass.domain.execution import ItemStatus, NewItem, NewReject
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.pipelines.definition import PipelineStep
from windlass.pipelines.emitter import Chunk, Emitter, Position
from windlass.pipelines.running_item import RunningItem
from windlass.pipelines.step_context import StepContext
from windlass.runtime.failpoints import reached
from windlass.runtime.middleware import around
from windlass.stores.database import StoreDataError
from windlass.stores.plans.executions import Checkpoint, Written


class ChunkWrites(NamedTuple):
    """Makes the writes of chunks."""

    rejects: Callable[[], Sequence[NewReject]]
    """Returns what the body has rejected since the chunk before."""
    write: Callable[[Chunk, Sequence[NewReject]], Checkpoint]
    """Makes the write of a chunk, and notes what it leads to."""


async def emit(
    claimed: ClaimedExecution,
    step: PipelineStep,
    context: StepContext,
    given: Any,
    emitter: Emitter,
    writes: ChunkWrites,
) -> None:
    """Run the body of a step that gives many items, and store them in chunks; the last one is left in the emitter.

    A body that is no coroutine runs to its end on one thread: what it holds open may know its thread.
    """

    def after(answer: Written) -> None:
        reached("expand.chunk_after_commit")
        if answer.paused or context.canceled or claimed.context.draining:
            raise EndAttempt("advanced")  # what is stored is dropped when the body runs again

    def body(*args: Any, **kwargs: Any) -> None:
        for value in step.function(*args, **kwargs):
            if emitter.add(value):
                claimed.sink.offer_blocking(rejects := writes.rejects())
                reached("expand.chunk_before_commit")
                after(claimed.checkpoint_blocking(writes.write(emitter.take(), rejects)))
        emitter.check_end()

    async def abody(*args: Any, **kwargs: Any) -> None:
        produced = step.function(*args, **kwargs)
        if step.is_coroutine:
            produced = await produced
        async for value in produced if isinstance(produced, AsyncIterable) else _each(produced):
            if emitter.add(value):
                await claimed.sink.offer(rejects := writes.rejects())
                reached("expand.chunk_before_commit")
                after(await claimed.checkpoint(writes.write(emitter.take(), rejects)))
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
        self, claimed: ClaimedExecution, context: StepContext, item: RunningItem, place: tuple[PipelineStep, int, int]
    ) -> None:
        self._claimed = claimed
        self._context = context
        self._item = item
        self._step, self._stage, self._end = place
        self._emitter: Emitter | None = None
        self._seen: Counter[str] = Counter()
        self._before = item.position
        """What is stored for certain."""

    async def run(self) -> None:
        """Run the body, and store what it gives."""
        claimed, item, end = self._claimed, self._item, self._end
        born = (ItemStatus.READY, item.cursor + 1) if item.cursor + 1 < end else (ItemStatus.DONE, end)
        place = (claimed.state.id, self._stage, item.path)
        position = Position(item.emitted, item.last_hash)
        self._emitter = Emitter(claimed.definition, claimed.values, self._step, place, position, lambda value: born)
        writes = ChunkWrites(self.taken_rejects, self._write)
        try:
            await emit(claimed, self._step, self._context, item.value, self._emitter, writes)
            rejects = self.taken_rejects()
            await claimed.sink.offer(rejects)
            await claimed.checkpoint(self._write(self._emitter.take(), rejects, ItemStatus.EXPANDED))
        except StoreDataError:
            item.position = self._before  # the store has refused a chunk, which is emitted again
            raise

    def _write(self, chunk: Chunk, rejects: Sequence[NewReject], status: ItemStatus = ItemStatus.READY) -> Checkpoint:
        claim, item = self._claimed.context.claim, self._item
        self._before = item.position
        item.emitted, item.last_hash = chunk.position
        changed = item.write(self._claimed.state.id, self._stage, status)
        job = (claim.job_id, claim.fence, self._claimed.state.id)
        return Checkpoint(*job, items=(changed,), new_items=chunk.items, rejects=rejects)

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
