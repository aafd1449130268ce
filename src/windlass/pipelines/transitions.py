"""Writes the transitions of an execution under its claim."""

from __future__ import annotations

from typing import Any

from windlass.domain.attempt_end import EndAttempt
from windlass.domain.execution import ExecutionState, FailedStep, LogRow
from windlass.domain.transition import Failure
from windlass.domain.transition_keys import transition_key
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.stores.plans.executions import Checkpoint, Written


class Transitions:
    """Makes and stores the writes of one claim; each is marked, so that one whose answer was lost is not repeated."""

    def __init__(self, claimed: ClaimedExecution) -> None:
        self._claimed = claimed
        self._number = 0

    def write(self, state: ExecutionState, log: LogRow, *, has_value: bool = False, **more: Any) -> Checkpoint:
        """Return the write of a new state."""
        self._number += 1
        claim, node = self._claimed.context.claim, self._claimed.context.node
        held = (claim.job_id, claim.fence, state.id)
        mark = f"{claim.fence}:{self._number}"
        return Checkpoint(*held, mark=mark, state=state, has_value=has_value, log=log, node=node, **more)

    async def store(self, state: ExecutionState, log: LogRow, *, has_value: bool = False, **more: Any) -> None:
        """Write a new state, and return when it is committed."""
        answer = await self._claimed.runtime.checkpoint(self.write(state, log, has_value=has_value, **more))
        self.took(state, answer, has_value=has_value)

    def took(self, state: ExecutionState, answer: Written, *, has_value: bool = False) -> None:
        """Go on with a state that was committed, and with what others want of the execution."""
        version = answer.row_version or self._claimed.state.row_version + 1
        state = state._replace(row_version=version, paused=int(answer.paused), failing=answer.failing)
        self._claimed.state = state._replace(value_version=version) if has_value else state

    def too_many_rejects(self, rejected: int, total: int) -> bool:
        """Return whether an execution with so many rejects fails."""
        limit = self._claimed.definition.max_rejected
        if limit is None:
            return False
        return rejected > (limit if isinstance(limit, int) else limit * total)

    def check_rejects(self, step: int, total: int) -> None:
        """End the execution if too many of its items were rejected."""
        state, limit = self._claimed.state, self._claimed.definition.max_rejected
        if not self.too_many_rejects(state.rejected, total):
            return
        error = f"RejectLimitError: {state.rejected} of {total} items were rejected, more than max_rejected={limit}"
        failure = Failure(error, "RejectLimitError")
        log = LogRow("ended", step, state.attempt, None, failure.error_class, failure.error)
        key = transition_key(state.id, step, state.attempt, "")
        raise EndAttempt("failed", failure=failure, reason="reject_limit", cargo=FailedStep(log, key))
