"""Steps of an execution that take or give many items: expand, transform and reduce."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from windlass.domain.execution import ExecutionState, LogRow
from windlass.domain.execution_items import ItemStatus, NewPart, NewReject
from windlass.domain.item_paths import FIRST, behind
from windlass.pipelines.claimed_execution import ITEMS_OF_A_PART, ClaimedExecution
from windlass.pipelines.definition import PipelineStep, Segment, StepKind
from windlass.pipelines.emitter import Emitter, ItemChunk, Position
from windlass.pipelines.item_expansion import ChunkStore, emit
from windlass.pipelines.item_streams import ItemStream, SingleStream, Stream
from windlass.pipelines.reject_records import SAMPLE
from windlass.pipelines.step_context import StepContext
from windlass.pipelines.step_verdict import RejectValue
from windlass.pipelines.transitions import Transitions
from windlass.stores.plans import items
from windlass.stores.plans.executions import Checkpoint, CheckpointAnswer

EMPTY, COMPLETE, BEING_FILLED = 0, 1, 2
"""`ExecutionState.filled`."""


class StreamResult(NamedTuple):
    """What such a step has made, to be stored at its boundary."""

    state: ExecutionState
    log: LogRow
    chunk: ItemChunk | None = None
    """The last items of an expansion."""
    value: Any = None
    """Value of a reduction."""
    rejects: tuple[NewReject, ...] = ()


class StreamSteps:
    """Runs such steps under the claim of an execution."""

    def __init__(self, claimed: ClaimedExecution, transitions: Transitions) -> None:
        self._claimed = claimed
        self._transitions = transitions
        self._emitter: Emitter | None = None
        self._context: StepContext | None = None
        self._seen: Counter[str] = Counter()

    async def run(self, step: PipelineStep, given: Any) -> StreamResult:
        """Run a step; what it raises is its failure."""
        context = self._context = self._claimed.step_context(step, self._claimed.state.attempt)
        self._emitter = None
        self._seen.clear()
        if step.kind is StepKind.REDUCE:
            return await self._reduce(step, context, given)
        return await self._expand(step, context, given)

    # ------------------------------------------------------------------ reductions

    async def _reduce(self, step: PipelineStep, context: StepContext, given: Any) -> StreamResult:
        claimed, state = self._claimed, self._claimed.state
        stream = self._stream(step, given)

        def body(*args: Any, **kwargs: Any) -> Any:
            return step.function(*((list(stream), *args[1:]) if step.wants_list else args), **kwargs)

        if step.wants_list and not step.is_async:
            called = await claimed.runtime.calls.run(step, context, claimed.definition.target, body, stream)
        else:
            called = await claimed.call(step, context, stream.__aiter__() if step.async_stream else iter(stream))
        number, text = claimed.encode(step, called)
        log = LogRow("step", step.index, state.attempt, None, None, None, number, text)
        following = state._replace(
            cursor=step.index + 1,
            attempt=1,
            streams=0,
            filled=EMPTY,
            emitted=0,
            last_hash=None,
            cut="",
            type=number,
            value=text,
        )
        return StreamResult(following, log, value=called, rejects=tuple(self._taken_rejects(step, context)))

    def _stream(self, step: PipelineStep, given: Any) -> Stream:
        """Return what a reduction or transformation iterates over."""
        claimed, state = self._claimed, self._claimed.state
        if not state.streams:
            return SingleStream(given)
        stage = self._input_stage()
        return ItemStream(claimed.runtime, claimed.values, state.id, stage, step.options.buffer)

    # ------------------------------------------------------------------ expansions and transformations

    async def _expand(self, step: PipelineStep, context: StepContext, given: Any) -> StreamResult:
        claimed, state = self._claimed, self._claimed.state
        source: Any = given
        if step.kind is StepKind.TRANSFORM:
            stream = self._stream(step, given)
            source = stream.__aiter__() if step.async_stream else iter(stream)
        if state.filled != BEING_FILLED:
            state = state._replace(stage=state.stage + 1, filled=BEING_FILLED, emitted=0, last_hash=None, cut="")
        segment = claimed.segment_at(step.index + 1)
        born = (ItemStatus.DONE if segment is None else ItemStatus.READY, step.index + 1)
        origin = (state.id, state.stage, "")
        position = Position(state.emitted, state.last_hash)
        self._emitter = Emitter(claimed.definition, claimed.values, step, origin, position, lambda value: born)
        claimed.state = state
        taken = partial(self._taken_rejects, step, context)
        chunks = ChunkStore(taken, partial(self._chunk, step), self._record)
        await emit(claimed, step, context, source, self._emitter, chunks)
        return self._complete(step, context)

    def _chunk(self, step: PipelineStep, chunk: ItemChunk, rejects: Sequence[NewReject]) -> Checkpoint:
        """Return the write of a chunk in the middle of an expansion."""
        state = self._claimed.state
        following = self._after_chunk(state, chunk)
        log = LogRow("chunk", step.index, state.attempt)
        return self._transitions.write(following, log, **self._items(step, following, chunk), rejects=rejects)

    def _record(self, write: Checkpoint, answer: CheckpointAnswer) -> None:
        assert write.state is not None
        self._transitions.record(write.state, answer)

    def _after_chunk(self, state: ExecutionState, chunk: ItemChunk) -> ExecutionState:
        return state._replace(emitted=chunk.position.emitted, last_hash=chunk.position.last_hash)

    def _items(self, step: PipelineStep, state: ExecutionState, chunk: ItemChunk) -> dict[str, Any]:
        """Return what a chunk stores: its items and, if steps follow that take them one by one, parts."""
        segment = self._claimed.segment_at(step.index + 1)
        if segment is None or not chunk.items:
            return {"new_items": chunk.items}
        parts = parts_of(state.id, state.stage, segment, [item.path for item in chunk.items])
        release = self._claimed.release(state.stage, segment)
        return {"new_items": chunk.items, "new_parts": parts, "release": release}

    def _complete(self, step: PipelineStep, context: StepContext | None) -> StreamResult:
        """Return the end of an expansion, with the items that are not stored yet."""
        assert self._emitter is not None
        state, chunk = self._claimed.state, self._emitter.take()
        if not chunk.items:  # one whose write has failed counts for nothing
            chunk = ItemChunk([], Position(state.emitted, state.last_hash))
        rejects = () if context is None else tuple(self._taken_rejects(step, context))
        following = self._after_chunk(state, chunk)._replace(
            cursor=step.index + 1, attempt=1, streams=1, filled=COMPLETE, type=None, value=None
        )
        return StreamResult(following, LogRow("staged", step.index, state.attempt), chunk, rejects=rejects)

    async def store(self, result: StreamResult, run_us: int) -> None:
        """Store the boundary behind such a step."""
        step = self._claimed.definition.steps[result.log.step]
        log, state = result.log._replace(run_us=run_us), result.state
        if result.chunk is None:
            await self._transitions.store(state, log, has_value=True, rejects=result.rejects)
            return
        segment = self._claimed.segment_at(step.index + 1)
        only_chunk = len(result.chunk.items) == state.emitted
        if only_chunk and segment is not None and segment.lane_key == (None, None):
            stored: dict[str, Any] = {"new_items": result.chunk.items}  # run by this very claim: no part is made
        else:
            stored = self._items(step, state, result.chunk)
        await self._transitions.store(state, log, **stored, rejects=result.rejects)

    async def recovered(self, step: PipelineStep, rejected: RejectValue, present: Callable[[], Any]) -> StreamResult:
        """Return what a failed expansion or transformation has given, with the reject of what it was given."""
        claimed = self._claimed
        reject = await self.reject_whole(step, claimed.state.attempt, rejected.error, present)
        if self._emitter is None:  # it failed before it began
            stage = claimed.state.stage + 1
            origin = (claimed.state.id, stage, "")
            self._emitter = Emitter(
                claimed.definition, claimed.values, step, origin, Position(0, None), lambda value: (ItemStatus.READY, 0)
            )
            claimed.state = claimed.state._replace(stage=stage, filled=BEING_FILLED, emitted=0, last_hash=None, cut="")
        result = self._complete(step, self._context)
        failure = claimed.runtime.tools.describe(rejected.error)
        log = result.log._replace(error_class=failure.error_class, error=failure.error)
        return result._replace(log=log, rejects=(*result.rejects, reject))

    # ------------------------------------------------------------------ rejects

    def _taken_rejects(self, step: PipelineStep, context: StepContext) -> list[NewReject]:
        given, context.rejected = context.rejected, []
        return self._claimed.rejects.of_stream(step, context.attempt, given, self._seen)

    async def reject_whole(
        self, step: PipelineStep, attempt: int, error: BaseException, present: Callable[[], Any]
    ) -> NewReject:
        """Return the reject of a step's whole input: of one item, or of a stream with a sample of it."""
        claimed, state = self._claimed, self._claimed.state
        if not (state.streams and step.kind.takes_stream):
            value, text = present(), state.value
            if state.value_version == 0:
                return claimed.rejects.of_item(step, attempt, "", value, error, (0, claimed.values.encode(0, value)))
            stored = None if text is None else (state.type or 0, text)
            return claimed.rejects.of_item(step, attempt, "", value, error, stored)
        page = await claimed.runtime.read(items.done, state.id, self._input_stage(), FIRST, SAMPLE)
        sample = [(item.type, item.value) for item in page if item.value is not None]
        count = await self.items_given(step)
        return claimed.rejects.of_whole_stream(step, attempt, sample, count, error)

    def _input_stage(self) -> int:
        """Return the stage that a step takes which takes a stream."""
        state = self._claimed.state
        return state.stage - 1 if state.filled == BEING_FILLED else state.stage

    async def items_given(self, step: PipelineStep) -> int:
        """Return the number of items that such a step was given; of an expansion: of those that it has made."""
        state = self._claimed.state
        if not step.kind.takes_stream:
            return (0 if self._emitter is None else self._emitter.count) + self.rejected
        if not state.streams:
            return 1
        counts = await self._claimed.runtime.read(items.counts, state.id, self._input_stage())
        return counts.get(ItemStatus.DONE, 0)

    @property
    def rejected(self) -> int:
        """Number of items that the body of the present step has rejected."""
        return self._seen.total()


def parts_of(execution: str, stage: int, segment: Segment, paths: Sequence[str]) -> list[NewPart]:
    """Return the parts of items that follow each other; behind limits every item is one, to count each call."""
    size = ITEMS_OF_A_PART if segment.lane_key == (None, None) else 1
    groups = [paths[start : start + size] for start in range(0, len(paths), size)]
    return [NewPart(execution, stage, segment.first, group[0], behind(group[-1])) for group in groups]
