"""The claim of a part: runs its range of items, and ends when they have ended, wait, or should make room."""

from __future__ import annotations

from typing import NoReturn

from windlass.context import JobContext
from windlass.domain.attempt_end import EndAttempt
from windlass.domain.execution import OPEN
from windlass.domain.transition import NEVER_DUE
from windlass.pipelines.cargo import PartEnded, PartFailed, PartParked, PartWaits
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.pipelines.definition import Definition
from windlass.pipelines.item_run import ItemRange, ItemRun
from windlass.pipelines.item_values import Values
from windlass.pipelines.node_runtime import NodeRuntime


async def run_part(
    runtime: NodeRuntime, definition: Definition, values: Values, context: JobContext, execution_id: str
) -> NoReturn:
    """Run the items of a part until an `EndAttempt` ends the claim."""
    claim = context.claim
    part = await runtime.part(claim.job_id)
    state = await runtime.execution(execution_id)
    if part is None or state is None or state.status != OPEN or state.failing is not None:
        raise EndAttempt("succeeded")  # the execution has ended, or goes on with other parts
    if state.paused:
        raise EndAttempt("advanced", delay_us=NEVER_DUE, cargo=PartParked(execution_id))
    claimed = ClaimedExecution(runtime, definition, values, context, state)
    segment = claimed.segment_at(part.segment)
    assert segment is not None
    item_range = ItemRange(part.stage, part.lo, part.hi)
    run = ItemRun(claimed, segment, item_range, careful=claim.crash_count > 0, workers=claimed.width(segment)[1])
    await run.run()
    called = None if claim.lane is None else run.called
    if run.failing is not None:
        raise EndAttempt("succeeded", called=called, cargo=PartFailed(execution_id, run.failing, tuple(run.failed)))
    due_us = await run.next_due()
    if due_us is not None:
        waits = PartWaits(run.is_ordered) if claimed.awaits(segment) else None
        raise EndAttempt("advanced", delay_us=due_us, called=called, cargo=waits)
    release = claimed.release(part.stage, segment)
    raise EndAttempt("succeeded", called=called, cargo=PartEnded(release))
