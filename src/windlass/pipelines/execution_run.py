"""The claim of an execution: step after step, each stored before the next one, until it ends, waits or makes room."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import msgspec

from windlass.context import Snooze
from windlass.domain.attempt_end import EndAttempt
from windlass.domain.clock import MICROSECONDS, monotonic
from windlass.domain.execution import FailedStep, ItemFailure, LastRejects, LogRow
from windlass.domain.execution_items import NewReject
from windlass.domain.external_wait import LastWait
from windlass.domain.lanes import read_lane
from windlass.domain.transition import NEVER_DUE
from windlass.domain.transition_keys import transition_key
from windlass.errors import StopJob
from windlass.execution_errors import RejectSinkError
from windlass.pipelines.cargo import Boundary, Finished
from windlass.pipelines.claimed_execution import ClaimedExecution, has_limits, is_called_once, lane_for, lane_of
from windlass.pipelines.definition import PipelineStep, StepKind
from windlass.pipelines.execution_results import result_of_items, result_of_value
from windlass.pipelines.final_items import FinalItems
from windlass.pipelines.interactions import Interactions, failure_of_wait, is_answered, is_waiting
from windlass.pipelines.item_segments import ItemSegments
from windlass.pipelines.item_values import ValueNotStoredError
from windlass.pipelines.step_verdict import RejectValue, RetryStep, StepVerdict, step_verdict
from windlass.pipelines.stream_steps import StreamResult, StreamSteps
from windlass.pipelines.subscribers import Subscribers
from windlass.pipelines.transitions import Transitions


class ExecutionRun:
    """One claim of an execution."""

    def __init__(self, claimed: ClaimedExecution, given: Any, subscribers: Subscribers) -> None:
        self._claimed = claimed
        self._input = given
        self._transitions = Transitions(claimed)
        self._streams = StreamSteps(claimed, self._transitions)
        self._segments = ItemSegments(claimed, self._transitions)
        self._outside = Interactions(claimed)
        self._final_items = FinalItems(claimed, self._transitions, subscribers)
        lane = claimed.context.claim.lane
        self._held = "" if lane is None else read_lane(lane)._replace(target=None).text or ""
        """The lane whose permits the claim holds."""
        self._value: Any = None
        self._value_of: tuple[int, str | None] | None = None
        """The stored form of the present value, if that is in `_value`."""

    async def run(self) -> NoReturn:
        """Run until an `EndAttempt` ends the claim."""
        claimed = self._claimed
        steps = claimed.definition.steps
        while True:
            state = claimed.state
            if state.failing is not None:
                await self._after_failing(msgspec.json.decode(state.failing, type=ItemFailure))
                continue
            if state.paused:
                raise EndAttempt("advanced", delay_us=NEVER_DUE, lane=self._lane(), cargo=Boundary(paused=True))
            if state.cursor >= len(steps):
                await self._finish()
            elif state.streams and not steps[state.cursor].kind.takes_stream:
                await self._segments.run()
            elif steps[state.cursor].kind is StepKind.AWAIT:
                await self._run_outside(steps[state.cursor])
            elif is_called_once(steps[state.cursor]):
                await self._run_stream(steps[state.cursor])
            else:
                await self._run_single(steps[state.cursor])
            if claimed.should_end:
                raise EndAttempt("advanced", lane=self._lane())

    def _lane(self) -> str:
        """Return the lane in which the execution waits for its next step."""
        state, definition = self._claimed.state, self._claimed.definition
        if state.cursor >= len(definition.steps):
            return lane_for(definition, state.tenant)
        if state.streams and not definition.steps[state.cursor].kind.takes_stream:
            return lane_for(definition, state.tenant)  # items have permits of their own
        return lane_of(definition, state.cursor, state.tenant)

    def _enter(self, step: PipelineStep) -> bool:
        """End the claim if the step needs other permits than those it holds; return whether it has limits."""
        wanted = self._lane()
        if wanted != self._held:
            raise EndAttempt("advanced", lane=wanted)
        return has_limits(step)

    def _present(self) -> Any:
        """Return the present value, decoded once."""
        state = self._claimed.state
        if state.value_version == 0:
            return self._input
        stored = (state.value_version, state.value)
        if self._value_of != stored:
            self._value, self._value_of = self._claimed.values.decode(state.type or 0, state.value), stored
        return self._value

    # ------------------------------------------------------------------ steps of a single value

    async def _run_single(self, step: PipelineStep) -> None:
        claimed, value = self._claimed, self._present()
        if not claimed.definition.accepts(step, value):
            claimed.state = claimed.state._replace(cursor=step.index + 1, attempt=1)
            return
        limited = self._enter(step)
        attempt, began = claimed.state.attempt, monotonic()
        context = claimed.step_context(step, attempt)
        number = text = result = None
        try:
            result = await claimed.call(step, context, value)
            if step.kind is StepKind.STEP:
                number, text = claimed.encode(step, result)
        except BaseException as error:  # noqa: BLE001 - whatever a step raises is its failure
            await self._failed(step, error, began)
        log = LogRow("step", step.index, attempt, _micros(began), None, None, number, text)
        if step.index + 1 == len(claimed.definition.steps):
            await self._succeed(log, result if step.kind is StepKind.STEP else value, limited)
        if step.kind is StepKind.STEP:
            following = claimed.state._replace(cursor=step.index + 1, attempt=1, type=number, value=text)
        else:
            following = claimed.state._replace(cursor=step.index + 1, attempt=1)
        if limited:
            claimed.state = following
            write = self._transitions.write(following, log, has_value=text is not None, keeps_position=True)
            raise EndAttempt("advanced", lane=self._lane(), called=True, cargo=Boundary(write))
        await self._transitions.store(following, log, has_value=text is not None, keeps_position=True)
        if step.kind is StepKind.STEP:
            self._value, self._value_of = result, (claimed.state.value_version, text)

    async def _run_outside(self, step: PipelineStep) -> None:
        """Call the body and park, or continue with the outcome of the wait."""
        claimed, value, began = self._claimed, self._present(), monotonic()
        if not claimed.definition.accepts(step, value):
            claimed.state = claimed.state._replace(cursor=step.index + 1, attempt=1)
            return None
        last = (await self._outside.rounds(step, "", "")).get("")
        if last is not None and not last.closed:
            return await self._after_wait(step, last)
        limited, attempt = self._enter(step), claimed.state.attempt
        context = claimed.step_context(step, attempt)
        try:
            context.interaction = interaction = await self._outside.begin(step, "", last)
            wait = self._outside.wait(step, interaction, await claimed.call(step, context, value))
            log, state = LogRow("parked", step.index, attempt, _micros(began)), claimed.state
            write = self._transitions.write(state._replace(cursor=step.index), log, waits=(wait,))
            raise self._outside.park(wait.deadline, write, called=limited or None)
        except BaseException as error:  # noqa: BLE001 - whatever a step raises is its failure
            await self._failed(step, error, began)

    async def _after_wait(self, step: PipelineStep, last: LastWait) -> None:
        """Continue with an answer, fail if the deadline has passed, or wait for the rest of the time."""
        if is_answered(last):
            await self._answered(step, last)
        elif not is_waiting(last):
            error, verdict = failure_of_wait(step, last)
            await self._failed(step, error, monotonic(), verdict)
        elif self._outside.remaining_us(last.deadline):
            raise self._outside.park(last.deadline)
        else:
            await self._outside.expire(step, last)

    async def _answered(self, step: PipelineStep, last: LastWait) -> None:
        claimed, value = self._claimed, None
        try:
            value = self._outside.answer(step, last)
        except ValueNotStoredError as error:
            await self._failed(step, error, monotonic())
        log = LogRow("answered", step.index, claimed.state.attempt, type=last.type, value=last.answer)
        if step.index + 1 == len(claimed.definition.steps):
            await self._succeed(log, value, limited=False)
        following = claimed.state._replace(cursor=step.index + 1, attempt=1, type=last.type, value=last.answer)
        await self._transitions.store(following, log, has_value=True)
        self._value, self._value_of = value, (claimed.state.value_version, last.answer)

    async def _run_stream(self, step: PipelineStep) -> None:
        """Run a step that takes or gives many items."""
        claimed = self._claimed
        given = None if claimed.state.streams else self._present()
        if step.kind is StepKind.EXPAND and not claimed.definition.accepts(step, given):
            claimed.state = claimed.state._replace(cursor=step.index + 1, attempt=1)
            return
        limited, began = self._enter(step), monotonic()
        try:
            result = await self._streams.run(step, given)
            await claimed.sink.offer(result.rejects)
        except BaseException as error:  # noqa: BLE001 - whatever a step raises is its failure
            result = await self._failed(step, error, began)
        else:
            await self._check_rejects(step, result)
        if step.kind is StepKind.REDUCE and step.index + 1 == len(claimed.definition.steps):
            await self._succeed(result.log._replace(run_us=_micros(began)), result.value, limited, result.rejects)
        await self._streams.store(result, _micros(began))
        if limited:
            raise EndAttempt("advanced", lane=self._lane(), called=True)

    async def _check_rejects(self, step: PipelineStep, result: StreamResult) -> None:
        """End the execution if the body of a step has rejected too many items."""
        rejected = self._streams.rejected
        if rejected and self._claimed.definition.max_rejected is not None:
            total = await self._streams.items_given(step)
            await self._transitions.check_rejects(step.index, rejected, total, self._last(result.rejects))

    def _last(self, rejects: Sequence[NewReject]) -> LastRejects | None:
        return LastRejects(rejects, self._claimed.sink.deliver_later) if rejects else None

    # ------------------------------------------------------------------ failures

    async def _failed(
        self, step: PipelineStep, error: BaseException, began: float, verdict: StepVerdict | None = None
    ) -> StreamResult:
        """Decide about a failed step; return only if an expansion or transformation keeps what it has given."""
        claimed = self._claimed
        if isinstance(error, EndAttempt | StopJob) or (
            isinstance(error, asyncio.CancelledError) and claimed.context.canceled
        ):
            raise error
        if isinstance(error, Snooze):
            raise EndAttempt("advanced", delay_us=int(error.delay * MICROSECONDS)) from None
        attempt = claimed.state.attempt
        found = verdict or step_verdict(error, attempt, step.options, claimed.runtime.parts.retry_policy)
        failure = claimed.runtime.tools.describe(found.error)
        log = LogRow("retry", step.index, attempt, _micros(began), failure.error_class, failure.error)
        if isinstance(found, RetryStep):
            write = self._transitions.write(claimed.state._replace(attempt=attempt + 1), log, keeps_position=True)
            end = EndAttempt("retried", delay_us=found.delay_us, failure=failure, called=error, cargo=Boundary(write))
            raise end from None
        ended = log._replace(kind="ended")
        if isinstance(found, RejectValue):
            try:
                return await self._rejected(step, found, ended, error)
            except RejectSinkError as refusal:
                return await self._failed(step, refusal, began)
        key = transition_key(claimed.state.id, step.index, attempt, "")
        end = EndAttempt("failed", failure=failure, reason=found.reason, called=error, cargo=FailedStep(ended, key))
        raise end from None

    async def _rejected(
        self, step: PipelineStep, found: RejectValue, ended: LogRow, error: BaseException
    ) -> StreamResult:
        """Reject what a step was given; return only if an expansion or transformation keeps what it has given."""
        claimed, result = self._claimed, None
        if step.kind.gives_stream:
            result = await self._streams.recovered(step, found, self._present)
            rejects = result.rejects
        else:
            rejects = (await self._streams.reject_whole(step, claimed.state.attempt, found.error, self._present),)
        await claimed.sink.offer(rejects)
        some, last = sum(reject.item_count for reject in rejects), self._last(rejects)
        if self._transitions.too_many_rejects(claimed.state.rejected + some, (some, some)):
            raise self._transitions.over_limit(step.index, some, some, last) from None
        if result is None:
            raise EndAttempt("succeeded", called=error, cargo=Finished(ended, last)) from None
        return result

    async def _after_failing(self, failing: ItemFailure) -> None:
        """End the execution by the failure of one of its items, or reject the item that kills its process."""
        if failing.reason == "worker_lost" and failing.path:
            with suppress(RejectSinkError):
                found = await self._segments.after_lost(failing)
                if found is None:
                    return
                failing = found
        key = transition_key(self._claimed.state.id, failing.step, failing.attempt, failing.path)
        log = LogRow("ended", failing.step, failing.attempt, None, failing.error_class, failing.error)
        raise EndAttempt("failed", failure=failing.failure, reason=failing.reason, cargo=FailedStep(log, key))

    # ------------------------------------------------------------------ the end

    async def _succeed(self, log: LogRow, value: Any, limited: bool, rejects: Sequence[NewReject] = ()) -> NoReturn:
        """End an execution whose last value is a single one: where items are expected, it is a stream of one."""
        result = result_of_value(self._claimed, [value] if self._claimed.definition.ends_in_items else value)
        called = True if limited else None
        outgoing = await self._final_items.of_value(value)
        cargo = Finished(log._replace(kind="ended"), self._last(rejects), outgoing)
        raise EndAttempt("succeeded", result=result, called=called, cargo=cargo)

    async def _finish(self) -> None:
        """End an execution that has passed its last step; return if it has more items to publish."""
        state = self._claimed.state
        log = LogRow("ended", max(0, state.cursor - 1), state.attempt)
        if not state.streams:
            await self._succeed(log, self._present(), limited=False)
        outgoing = await self._final_items.next_chunk()
        if outgoing is not None:
            result = await result_of_items(self._claimed)
            raise EndAttempt("succeeded", result=result, cargo=Finished(log, outgoing=outgoing))


def _micros(began: float) -> int:
    return int((monotonic() - began) * MICROSECONDS)
