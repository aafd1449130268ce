"""Steps that items run through one by one: parts are made for them, and the execution waits until all have ended."""

from __future__ import annotations

from typing import Any

from windlass.domain.attempt_end import EndAttempt
from windlass.domain.execution import FailedStep, ItemFailure, LogRow
from windlass.domain.execution_items import ItemStatus
from windlass.domain.item_paths import FIRST, child
from windlass.domain.transition import NEVER_DUE
from windlass.domain.transition_keys import transition_key
from windlass.errors import WorkerLostError
from windlass.pipelines.cargo import Boundary, Outside
from windlass.pipelines.claimed_execution import ITEMS_OF_A_PART, ClaimedExecution
from windlass.pipelines.claimed_item import ClaimedItem
from windlass.pipelines.definition import Segment
from windlass.pipelines.item_run import ItemRange, ItemRun
from windlass.pipelines.stream_steps import COMPLETE, EMPTY, parts_of
from windlass.pipelines.transitions import Transitions
from windlass.stores.plans import items
from windlass.stores.plans.executions import Checkpoint

PARTS_OF_A_CHUNK = 8
LAST = "g"
"""Sorts behind every path."""


class ItemSegments:
    """Runs the present segment of an execution's items."""

    def __init__(self, claimed: ClaimedExecution, transitions: Transitions) -> None:
        self._claimed = claimed
        self._transitions = transitions

    async def run(self) -> None:
        """Make parts, wait for them, or run the remaining items; return at the end of the segment."""
        claimed = self._claimed
        segment = claimed.segment_at(claimed.state.cursor)
        assert segment is not None
        if claimed.state.filled != COMPLETE:
            await self._cut(segment)
        read, state = claimed.runtime.read, claimed.state
        if await read(items.any_part, state.id):
            if not await read(items.any_live_part, state.id):  # it was started over, or a crash came between
                await self._release(segment)
            raise EndAttempt("advanced", delay_us=NEVER_DUE, lane=claimed.item_lane, cargo=Boundary())
        await self._run_here(segment)
        await self._end(segment)

    async def _release(self, segment: Segment) -> None:
        claim, state = self._claimed.context.claim, self._claimed.state
        release = self._claimed.release(state.stage, segment)
        await self._claimed.runtime.checkpoint(Checkpoint(claim.job_id, claim.fence, state.id, release=release))

    async def _cut(self, segment: Segment) -> None:
        """Make parts of the items that have passed the segment before this one."""
        claimed = self._claimed
        most = ITEMS_OF_A_PART * PARTS_OF_A_CHUNK
        while claimed.state.filled != COMPLETE:
            state = claimed.state
            item_range = (state.id, state.stage, state.cut, segment.first)
            paths = await claimed.runtime.read(items.to_cut, *item_range, most)
            filled = COMPLETE if len(paths) < most else state.filled
            log = LogRow("chunk", segment.first, state.attempt)
            if not paths:
                await self._transitions.store(state._replace(filled=filled), log)
                return
            parts = parts_of(state.id, state.stage, segment, paths)
            following = state._replace(filled=filled, cut=paths[-1])
            readies = (state.cut, paths[-1], segment.first)
            release = claimed.release(state.stage, segment)
            await self._transitions.store(following, log, new_parts=parts, readies=readies, release=release)
            if claimed.state.paused or claimed.should_end:
                raise EndAttempt("advanced", lane=claimed.item_lane)

    async def _run_here(self, segment: Segment) -> None:
        """Run the items that no part was made for: of an expansion into a few."""
        claimed, state = self._claimed, self._claimed.state
        item_range = ItemRange(state.stage, FIRST, LAST)
        if claimed.context.claim.crash_count > 0:
            await self._pass_to_part(segment)
        run = ItemRun(claimed, segment, item_range, careful=False, workers=claimed.concurrency(segment))
        await run.run()
        if run.failing is not None:
            failing = run.failing
            key = transition_key(state.id, failing.step, failing.attempt, failing.path)
            log = LogRow("ended", failing.step, failing.attempt, None, failing.error_class, failing.error)
            cargo = FailedStep(log, key, items=tuple(run.failed))
            raise EndAttempt("failed", failure=failing.failure, reason=failing.reason, cargo=cargo)
        due_us = await run.next_due()
        if due_us is not None:
            outside: Outside = ("ordered" if run.is_ordered else "items") if claimed.awaits(segment) else ""
            raise EndAttempt("advanced", delay_us=due_us, lane=claimed.item_lane, cargo=Boundary(outside=outside))

    async def _pass_to_part(self, segment: Segment) -> None:
        """Leave items to a part after a crash: it finds the one that kills its process, which the others survive."""
        claimed, state = self._claimed, self._claimed.state
        every_item = (state.id, state.stage, FIRST, LAST)
        left = await claimed.runtime.read(items.to_run, every_item, 1)
        if not left:
            return
        first = child(FIRST, 0)
        part = parts_of(state.id, state.stage, segment, [first])[0]._replace(hi=LAST)
        log = LogRow("chunk", segment.first, state.attempt)
        await self._transitions.store(state, log, new_parts=(part,), release=claimed.release(state.stage, segment))
        raise EndAttempt("advanced", delay_us=NEVER_DUE, lane=claimed.item_lane, cargo=Boundary())

    async def _end(self, segment: Segment) -> None:
        claimed = self._claimed
        if claimed.definition.max_rejected is not None:
            state = claimed.state
            counts = await claimed.runtime.read(items.counts, state.id, state.stage)
            total = sum(counts.values()) - counts.get(ItemStatus.EXPANDED, 0)
            await self._transitions.check_rejects(segment.end - 1, counts.get(ItemStatus.REJECTED, 0), total)
        following = claimed.state._replace(cursor=segment.end, attempt=1, filled=EMPTY, cut="")
        await self._transitions.store(following, LogRow("staged", segment.end - 1, 1))

    async def after_lost(self, failing: ItemFailure) -> ItemFailure | None:
        """Reject an item that has killed its process too often; its part continues.

        Return the failure that ends the execution if the item's step does not recover.
        """
        claimed, state = self._claimed, self._claimed.state
        segment = claimed.segment_at(failing.step)
        row = await claimed.runtime.read(items.item, state.id, state.stage, failing.path)
        if row is None or segment is None:
            return failing
        changes: dict[str, Any] = {}
        if row.status in (ItemStatus.READY, ItemStatus.RETRY):  # else it had ended, and others were lost after it
            step = claimed.definition.steps[row.cursor]
            if not step.options.recover_on_failure:
                return failing._replace(step=row.cursor, attempt=row.attempt)
            item = ClaimedItem(row, claimed.values.decode(row.type, row.value))
            error = WorkerLostError(failing.error)
            reject = claimed.rejects.of_item(step, item.attempt, item.path, item.value, error, item.stored)
            await claimed.sink.offer((reject,))
            described = (failing.error_class, failing.error)
            changes = {
                "items": (item.write(state.id, state.stage, ItemStatus.REJECTED, described),),
                "rejects": (reject,),
            }
        claim, release = claimed.context.claim, claimed.release(state.stage, segment)
        held = (claim.job_id, claim.fence, state.id)
        await claimed.checkpoint(Checkpoint(*held, release=release, clears_failing=state.stage, **changes))
        claimed.state = state._replace(failing=None)
        return None
