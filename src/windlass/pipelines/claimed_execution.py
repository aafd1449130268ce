"""An execution under a claim: what the runs of single values and of items share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from windlass.context import JobContext
from windlass.domain.clock import MICROSECONDS, monotonic
from windlass.domain.execution import ExecutionState
from windlass.domain.job import NewJob
from windlass.domain.keys import MAX_NAME
from windlass.domain.lanes import Lane
from windlass.pipelines.definition import Definition, PipelineStep, Segment, StepKind
from windlass.pipelines.item_values import ValueNotStoredError, Values
from windlass.pipelines.node_runtime import NodeRuntime
from windlass.pipelines.reject_delivery import RejectDelivery
from windlass.pipelines.reject_records import Rejects
from windlass.pipelines.reject_sinks import destination_of, is_fed, sink_of_name
from windlass.pipelines.step_context import StepContext
from windlass.stores.plans.executions import Checkpoint, CheckpointAnswer
from windlass.stores.plans.items import Release

SLICE: Final = 10.0
"""Seconds after which a claim ends at the next boundary, so that a long execution does not keep its slot."""
PARTS_AT_A_TIME: Final = 8
"""Number of parts of an execution that have jobs at a time, so that a large expansion does not hold up others."""
PARTS_THAT_WAIT: Final = 32
"""The same where items wait outside: a part that waits keeps its position among them, and holds nothing else."""
ITEMS_OF_A_PART: Final = 128
NO_TIMEOUT: Final = '{"timeout":null}'
"""The options of jobs of pipelines: each step has a time limit of its own."""


class ClaimedExecution:
    """One claim of an execution, or of a part of its items."""

    def __init__(
        self, runtime: NodeRuntime, definition: Definition, values: Values, context: JobContext, state: ExecutionState
    ) -> None:
        self.runtime = runtime
        self.definition = definition
        self.values = values
        self.context = context
        self.state = state
        self.began = monotonic()
        claim = context.claim
        self._claim = claim if claim.job_id == state.id else claim._replace(job_id=state.id)
        """The claim as steps see it: of their execution, also in a part."""
        settings, options = runtime.parts.settings, definition.options
        include = settings.include_payload if options.include_payload is None else options.include_payload
        sink = sink_of_name(settings.reject_sink) if options.sink is None else options.sink
        made = (definition, state, context.correlation_id, runtime.tools.describe, values)
        destination = destination_of(definition.name)
        fed = destination if is_fed(sink, options.sink_failure) else None
        self.rejects = Rejects(*made, include, sink.durable, self.store_now, fed)
        wake = partial(runtime.parts.bells.ring, destination)
        self.sink = RejectDelivery(sink, options.sink_failure, self.rejects.value, wake, self._beside, self._described)

    async def _beside(self, what: str, function: Callable[[], None]) -> None:
        await self.runtime.calls.run_beside(what, self.definition.target, function)

    def _described(self, error: BaseException) -> str:
        return self.runtime.tools.describe(error).error

    @property
    def item_lane(self) -> str:
        """The lane in which the execution waits for its items."""
        return lane_for(self.definition, self.state.tenant)

    @property
    def should_end(self) -> bool:
        """Whether the claim should end at this boundary, and the execution continue later."""
        return self.context.draining or self.context.canceled or monotonic() - self.began > SLICE

    def store_now(self) -> int:
        """Return the store's time in microseconds, as far as it is known here."""
        return self.context.claim.picked_at + int((monotonic() - self.context.received) * MICROSECONDS)

    async def checkpoint(self, write: Checkpoint) -> CheckpointAnswer:
        """Write what the claim has finished; new rejects go to the sink after the commit."""
        answer = await self.runtime.checkpoint(write)
        if write.rejects:
            await self.sink.deliver(write.rejects, answer.new_rejects)
        return answer

    def checkpoint_blocking(self, write: Checkpoint) -> CheckpointAnswer:
        """Do the same on a thread."""
        answer = self.runtime.checkpoint_blocking(write)
        self.sink.deliver_blocking(write.rejects, answer.new_rejects)
        return answer

    def call(self, step: PipelineStep, context: StepContext, *given: Any) -> Coroutine[Any, Any, Any]:
        """Call a step."""
        return self.runtime.calls.call(step, context, self.definition.target, *given)

    def step_context(self, step: PipelineStep, attempt: int, path: str = "") -> StepContext:
        """Return the context of a call."""
        return StepContext(self.context, step, self._claim, attempt, path)

    def encode(self, step: PipelineStep, value: Any) -> tuple[int, str]:
        """Return the type and the stored form of what a step returned."""
        try:
            number = self.definition.type_of(step.index, value)
            return number, self.values.encode(number, value)
        except Exception as error:
            raise ValueNotStoredError(f"what step {step.name!r} returned cannot be stored: {error}") from error

    def segment_at(self, cursor: int) -> Segment | None:
        """Return the steps that items at a step run through under one claim; None: the next one takes them all."""
        steps = self.definition.steps
        if cursor >= len(steps) or steps[cursor].kind.takes_stream:
            return None
        found = next(one for one in self.definition.segments() if one.first <= cursor < one.end)
        return found._replace(first=cursor)

    def concurrency(self, segment: Segment) -> int:
        """Return how many items of a segment run at a time, in all of its parts."""
        steps = self.definition.steps[segment.first : segment.end]
        return min(1 if step.options.ordered else step.options.concurrency for step in steps)

    def awaits(self, segment: Segment) -> list[PipelineStep]:
        """Return the steps of a segment that wait for answers from outside."""
        return [step for step in self.definition.steps[segment.first : segment.end] if step.kind is StepKind.AWAIT]

    def width(self, segment: Segment) -> tuple[int, int]:
        """Return how many parts have jobs at a time, and how many items of a part run at a time."""
        most = self.concurrency(segment)
        if segment.lane_key != (None, None):
            return most, 1
        parts = min(PARTS_THAT_WAIT if self.awaits(segment) else PARTS_AT_A_TIME, most)
        return parts, max(1, most // parts)

    def release(self, stage: int, segment: Segment) -> Release:
        """Return what gives jobs to parts of a segment: in the queue of this claim, whatever is declared by now."""
        claim = self.context.claim
        circuit, resource = segment.lane_key
        template = NewJob(
            id="",
            queue=claim.queue,
            target=self.definition.items_target,
            priority=claim.priority,
            args="",
            options=NO_TIMEOUT,
            correlation_id=self.context.correlation_id,
            parent_id=self.state.id,
            lane=lane_for(self.definition, self.state.tenant, circuit, resource) or None,
        )
        return Release(self.state.id, stage, segment.first, self.width(segment)[0], template)


def lane_for(definition: Definition, tenant: str, circuit: str | None = None, resource: str | None = None) -> str:
    """Return the lane of jobs behind these limits, and behind that of the tenant; an empty text for none."""
    if definition.options.tenant_concurrency is not None:
        return Lane(tenant_resource(definition.name), tenant, circuit).text or ""
    if circuit is None and resource is None:  # as usual; asked at every step
        return ""
    return Lane(resource, None, circuit).text or ""


def lane_of(definition: Definition, cursor: int, tenant: str) -> str:
    """Return the lane in which an execution with a single value waits for a step; an empty text for none."""
    options = definition.steps[cursor].options
    return lane_for(definition, tenant, options.circuit, options.resource)


def tenant_resource(pipeline: str) -> str:
    """Return the resource whose keys are the tenants of a pipeline."""
    name = f"pipeline:{pipeline}"
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def has_limits(step: PipelineStep) -> bool:
    """Return whether a step has limits of its own, so that its permit is returned when it has ended."""
    return step.options.circuit is not None or step.options.resource is not None


def is_called_once(step: PipelineStep) -> bool:
    """Return whether a step has one call for all items, or gives many: its body is iterated."""
    return step.kind in (StepKind.EXPAND, StepKind.TRANSFORM, StepKind.REDUCE)
