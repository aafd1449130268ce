"""Writes the transitions of an execution under its claim."""

from __future__ import annotations

from typing import Any

from windlass.domain.attempt_end import EndAttempt
from windlass.domain.execution import ExecutionState, FailedStep, LastRejects, LogRow
from windlass.domain.transition import Failure
from windlass.domain.transition_keys import transition_key
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.stores.plans.executions import Checkpoint, CheckpointAnswer


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
        answer = await self._claimed.checkpoint(self.write(state, log, has_value=has_value, **more))
        self.record(state, answer, has_value=has_value)

    def record(self, state: ExecutionState, answer: CheckpointAnswer, *, has_value: bool = False) -> None:
        """Continue with a committed state, and with requests of others to the execution."""
        version = answer.row_version or self._claimed.state.row_version + 1
        self._claimed.state = state._replace(
            row_version=version,
            paused=int(answer.paused),
            failing=answer.failing,
            value_version=version if has_value else state.value_version,
        )

    def too_many_rejects(self, rejected: int, share_of: tuple[int, int]) -> bool:
        """Return whether so many rejects are too many: in all, and as a share of the items of a step or stage."""
        limit, (some, total) = self._claimed.definition.max_rejected, share_of
        if limit is None:
            return False
        return rejected > limit if isinstance(limit, int) else some > limit * total

    async def check_rejects(self, step: int, some: int, total: int, last: LastRejects | None = None) -> None:
        """End the execution if too many of its items were rejected; `last` are those that are not stored yet."""
        claimed = self._claimed
        if claimed.definition.max_rejected is None:
            return
        current = await claimed.runtime.execution(claimed.state.id)
        if current is not None:
            claimed.state = claimed.state._replace(rejected=current.rejected)
        rejected = claimed.state.rejected + sum(reject.item_count for reject in (() if last is None else last.rejects))
        if self.too_many_rejects(rejected, (some, total)):
            raise self.over_limit(step, some, total, last)

    def over_limit(self, step: int, some: int, total: int, last: LastRejects | None = None) -> EndAttempt:
        """Return the end of an execution of which too many items were rejected."""
        state, limit = self._claimed.state, self._claimed.definition.max_rejected
        error = f"RejectLimitError: {some} of {total} items were rejected, and max_rejected is {limit}"
        failure = Failure(error, "RejectLimitError")
        log = LogRow("ended", step, state.attempt, None, failure.error_class, failure.error)
        key = transition_key(state.id, step, state.attempt, "")
        return EndAttempt("failed", failure=failure, reason="reject_limit", cargo=FailedStep(log, key, last))
