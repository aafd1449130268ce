"""Steps that wait for answers from outside, under a claim: what their bodies see, and what is stored of their waits."""

from __future__ import annotations

from typing import Any

from windlass.domain.attempt_end import EndAttempt
from windlass.domain.clock import MICROSECONDS, from_micros
from windlass.domain.external_wait import LastWait, NewWait, WaitKey, WaitStatus
from windlass.domain.interaction_tokens import TokenContent
from windlass.execution_errors import AwaitTimeoutError
from windlass.pipelines.cargo import Boundary
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.pipelines.definition import PipelineStep
from windlass.pipelines.item_values import ValueNotStoredError
from windlass.pipelines.step_verdict import FailExecution, RejectValue
from windlass.pipelines.token_keys import TokenKeys
from windlass.runtime.verbs import adrive
from windlass.stores.plans import external_waits
from windlass.stores.plans.executions import Checkpoint
from windlass.submission.error_text import short


class Interaction:
    """One round of a wait, whose deadline was set when the body began."""

    __slots__ = ("_keys", "deadline", "key")

    def __init__(self, key: WaitKey, deadline: int, keys: TokenKeys) -> None:
        self.key = key
        self.deadline = deadline
        self._keys = keys

    @property
    def interaction_id(self) -> str:
        """The effect key of the step; with `~2` for a second round."""
        return self.key.interaction_id

    @property
    def token(self) -> str:
        """Return the token that allows its holder to answer."""
        return self._keys.sign(TokenContent(self.key, self.deadline))


class Interactions:
    """Begins waits, and reads their outcomes, for one claim."""

    def __init__(self, claimed: ClaimedExecution) -> None:
        self._claimed = claimed

    async def rounds(self, step: PipelineStep, first: str, last: str) -> dict[str, LastWait]:
        """Return the last round of a step's waits by path, from one path to another."""
        path_range = (self._claimed.state.id, step.index, first, last)
        return await self._claimed.runtime.read(external_waits.last_rounds, *path_range)

    async def begin(self, step: PipelineStep, path: str, last: LastWait | None) -> Interaction:
        """Return the round that begins with a call of the body."""
        runtime, state = self._claimed.runtime, self._claimed.state
        first = state.first_round if step.index <= state.asked_to else 1
        number = first if last is None else max(first, last.next_round)
        await runtime.patiently(lambda: adrive(runtime.parts.tokens.ready(runtime.database)))
        key = WaitKey(state.id, step.index, path, number)
        return Interaction(key, self._claimed.store_now() + int(step.wait * MICROSECONDS), runtime.parts.tokens)

    def wait(self, step: PipelineStep, interaction: Interaction, result: Any) -> NewWait:
        """Return the wait to be stored, with what the body has returned as its request."""
        claimed = self._claimed
        try:
            request = claimed.values.encode_request(step.index, result)
        except Exception as error:
            raise ValueNotStoredError(f"what step {step.name!r} returned cannot be stored: {error}") from error
        state = claimed.state
        correlation = claimed.context.correlation_id or state.id
        names = (state.tenant, claimed.definition.name, correlation)
        return NewWait(*interaction.key, *names, request, interaction.deadline, state.stage)

    def answer(self, step: PipelineStep, last: LastWait) -> Any:
        """Return the answer that has completed a wait."""
        try:
            return self._claimed.values.decode(last.type or 0, last.answer)
        except Exception as error:
            raise ValueNotStoredError(f"the answer to step {step.name!r} cannot be read: {error}") from error

    async def expire(self, step: PipelineStep, last: LastWait) -> None:
        """Expire the wait of a single value, unless it was answered meanwhile."""
        claim, execution = self._claimed.context.claim, self._claimed.state.id
        key = WaitKey(execution, step.index, "", last.round)
        await self._claimed.checkpoint(Checkpoint(claim.job_id, claim.fence, execution, expires=(key,)))

    def park(self, deadline: int, write: Checkpoint | None = None, *, called: bool | None = None) -> EndAttempt:
        """Return the end of a claim whose execution waits for an answer, without permits of its step."""
        delay, cargo = self.remaining_us(deadline), Boundary(write, outside="value")
        return EndAttempt("advanced", delay_us=delay, lane=self._claimed.item_lane, called=called, cargo=cargo)

    def remaining_us(self, deadline: int) -> int:
        """Return the microseconds until a deadline."""
        return max(0, deadline - self._claimed.store_now())


def is_answered(last: LastWait | None) -> bool:
    """Return whether a step continues with an answer, without a call of its body."""
    return last is not None and not last.closed and last.status == WaitStatus.COMPLETED


def is_waiting(last: LastWait | None) -> bool:
    """Return whether a step waits."""
    return last is not None and not last.closed and last.status == WaitStatus.WAITING


def is_expired(last: LastWait | None) -> bool:
    """Return whether a step fails because no answer came in time."""
    return last is not None and not last.closed and last.status == WaitStatus.EXPIRED


def failure_of_wait(step: PipelineStep, last: LastWait) -> tuple[Exception, RejectValue | FailExecution | None]:
    """Return the failure of a step whose wait is over without an answer, and the verdict on it, if it has one."""
    if is_expired(last):
        late = timeout_error(step, last.deadline)
        return late, verdict_of_timeout(step, late)
    return ValueNotStoredError(f"the wait of step {step.name!r} is damaged: its status is {short(last.status)}"), None


def timeout_error(step: PipelineStep, deadline: int) -> AwaitTimeoutError:
    """Return the failure of a step whose answer did not come."""
    return AwaitTimeoutError(
        f"no answer to step {step.name!r} came within {step.wait:g} s, "
        f"until {from_micros(deadline):%Y-%m-%d %H:%M:%S} UTC"
    )


def verdict_of_timeout(step: PipelineStep, error: AwaitTimeoutError) -> RejectValue | FailExecution:
    """Decide what follows if no answer came: no new round begins by itself."""
    kind = RejectValue if step.options.recover_on_failure else FailExecution
    return kind(error, "await_timeout")
