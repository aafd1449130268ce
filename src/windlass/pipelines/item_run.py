"""Runs a range of items through the steps of a segment: in parts, or within the claim of the execution itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from windlass.context import Snooze
from windlass.domain.attempt_end import EndAttempt
from windlass.domain.clock import MICROSECONDS
from windlass.domain.execution import OPEN, ItemFailure, item_failure_of
from windlass.domain.execution_items import ItemRow, ItemStatus, ItemWrite, NewItem, NewReject
from windlass.domain.external_wait import NewWait
from windlass.domain.item_paths import right_behind
from windlass.errors import StopJob
from windlass.execution_errors import RejectSinkError
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.pipelines.claimed_item import ClaimedItem
from windlass.pipelines.definition import PipelineStep, Segment, StepKind
from windlass.pipelines.interactions import is_answered, is_expired, is_waiting, timeout_error, verdict_of_timeout
from windlass.pipelines.item_expansion import ItemExpansion
from windlass.pipelines.item_waits import ItemWaits
from windlass.pipelines.step_context import StepContext
from windlass.pipelines.step_verdict import RejectValue, RetryStep, StepVerdict, step_verdict
from windlass.runtime.failpoints import reached
from windlass.stores.plans import items
from windlass.stores.plans.executions import Checkpoint, CheckpointAnswer

HOWEVER_LATE = 2**61
OF_THE_CLAIM = (EndAttempt, StopJob)
"""Exceptions that end the claim, and are not a failure of a step."""


class ItemRange(NamedTuple):
    """Items of a stage from a path on, and before another."""

    stage: int
    lo: str
    hi: str


class ItemRun:
    """Runs items with several workers, which are tasks; every finished step is stored before the next one."""

    def __init__(
        self, claimed: ClaimedExecution, segment: Segment, given: ItemRange, *, careful: bool, workers: int
    ) -> None:
        self._claimed = claimed
        self._workers = 1 if careful else workers
        self._segment = segment
        self._range = given
        self._careful = careful
        """Whether items run one at a time, each noted first: the claim before this one has killed its process."""
        self._ordered = any(step.options.ordered for step in claimed.definition.steps[segment.first : segment.end])
        self._ahead_us = HOWEVER_LATE if self._ordered else 0
        """Items that wait outside are read too where they hold up the ones behind them."""
        self._waits = ItemWaits(claimed, claimed.awaits(segment), ahead=self._ordered)
        claim = claimed.context.claim
        self._claim = (claim.job_id, claim.fence, claimed.state.id)
        self._page: list[ItemRow] = []
        self._from = given.lo
        self._exhausted = False
        self._reading = asyncio.Lock()
        self._ran = 0
        self._cut_off = False
        """Whether the other workers were canceled because the claim has ended: no failure of their steps."""
        self._buffer = max(step.options.buffer for step in claimed.definition.steps[segment.first : segment.end])
        self.stopped = False
        """Whether it ended early: the execution was paused or canceled, or the claim should end."""
        self.failing: ItemFailure | None = None
        self.failed: list[ItemWrite] = []
        """Items that have failed for good, which is not stored yet."""
        self.called: BaseException | bool | None = None
        """How the last call of a step ended: an error, or True for success."""

    async def run(self) -> None:
        """Run what is due; afterwards some items may still wait for their retry."""
        while not self.stopped:
            self._from, self._exhausted, self._ran = self._range.lo, False, 0
            if self._workers == 1:
                await self._work()
            else:
                await self._work_together(self._workers)
            if not self._ran:  # a pass that ran something may have made items: of expansions
                return

    @property
    def is_ordered(self) -> bool:
        """Whether an item that has not ended holds up those behind it."""
        return self._ordered

    async def next_due(self) -> int | None:
        """Return the microseconds until the next item is due; None: all items have ended."""
        item_range = (self._claimed.state.id, *self._range)
        return await self._claimed.runtime.read(partial(items.next_due, ordered=self._ordered), item_range)

    async def _work_together(self, workers: int) -> None:
        tasks = [asyncio.ensure_future(self._work()) for _ in range(workers)]
        try:
            await asyncio.gather(*tasks)
        except BaseException as error:
            self.stopped = True
            if not isinstance(error, EndAttempt):  # at a boundary the others finish their step, which is stored
                self._cut_off = True
                for task in tasks:
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if not isinstance(error, EndAttempt) or self.failing is None:
                raise

    async def _work(self) -> None:
        while not self.stopped:
            row = await self._next()
            if row is None:
                return
            self._ran += 1
            if not await self._run_item(row) and self._ordered:
                self.stopped = True

    async def _next(self) -> ItemRow | None:
        """Return the next item that is due, of the present page or the next one."""
        while True:
            if self._claimed.should_end:
                self.stopped = True
                return None
            if self._page:
                row = self._page.pop()
                if row.status == ItemStatus.READY or row.due is None or row.due <= self._claimed.store_now():
                    return row
                if self._ordered:
                    self.stopped = True
                    return None
                continue
            if self._exhausted:
                return None
            async with self._reading:
                if not self._page and not self._exhausted:
                    await self._read_page()

    async def _read_page(self) -> None:
        item_range = (self._claimed.state.id, self._range.stage, self._from, self._range.hi)
        page = await self._claimed.runtime.read(items.to_run, item_range, self._buffer, self._ahead_us)
        self._exhausted = len(page) < self._buffer
        if page:
            self._from = right_behind(page[-1].path)
        kept = await self._waits.of_page(page)
        self._ran += len(page) - len(kept)  # they are read again, with their answers
        self.stopped = self.stopped or (self._ordered and len(kept) < len(page))
        self._page = kept[::-1]

    # ------------------------------------------------------------------ one item

    async def _run_item(self, row: ItemRow) -> bool:
        """Run one item through its steps; return False if it waits for a retry, or has failed."""
        claimed = self._claimed
        if self._careful:
            await self._write(Checkpoint(*self._claim, trying=row.path))
        item = ClaimedItem(row, claimed.values.decode(row.type, row.value))
        steps, end = claimed.definition.steps, self._segment.end
        self._pass_by(item)
        if item.cursor == end:
            await self._store(item, ItemStatus.DONE)
        while item.cursor < end and not self.stopped:
            step = steps[item.cursor]
            context = claimed.step_context(step, item.attempt, item.path)
            expansion = None
            if step.kind is StepKind.EXPAND:
                expansion = ItemExpansion(claimed, context, item, (step, self._range.stage, end))
            last = self._waits.last(step, item) if step.kind is StepKind.AWAIT else None
            if last is not None and is_waiting(last):  # its deadline has passed since its page was read
                return False
            if last is not None and is_expired(last):
                late = timeout_error(step, last.deadline)
                return await self._failed(item, step, late, None, verdict_of_timeout(step, late))
            try:
                goes_on = await self._call(item, step, context, expansion)
            except OF_THE_CLAIM:
                raise
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and (claimed.context.canceled or self._cut_off):
                    raise
                return await self._failed(item, step, error, expansion)
            if not goes_on:
                return step.kind is StepKind.EXPAND
            item.cursor, item.attempt = item.cursor + 1, 1
            self._pass_by(item)
            await self._store(item, ItemStatus.DONE if item.cursor == end else ItemStatus.READY)
        return True

    async def _call(
        self, item: ClaimedItem, step: PipelineStep, context: StepContext, expansion: ItemExpansion | None
    ) -> bool:
        """Call the body of a step; return False if the item does not continue: it was expanded, or waits outside."""
        if expansion is not None:
            await expansion.run()
            return False
        if step.kind is StepKind.AWAIT:
            last = self._waits.last(step, item)
            if last is not None and is_answered(last):
                self._waits.give(step, item, last)
                return True
            wait = await self._waits.ask(step, item, context)
            self.called = True
            await self._store(item, ItemStatus.OUTSIDE, waits=(wait,))
            reached("wait.after_park")
            return False
        result = await self._claimed.call(step, context, item.value)
        self.called = True
        if step.kind is StepKind.STEP:
            item.number, item.text = self._claimed.encode(step, result)
            item.value = result
        return True

    def _pass_by(self, item: ClaimedItem) -> None:
        """Pass an item by steps that do not take its type."""
        definition = self._claimed.definition
        while item.cursor < self._segment.end and not definition.accepts(definition.steps[item.cursor], item.value):
            item.cursor += 1

    async def _failed(
        self,
        item: ClaimedItem,
        step: PipelineStep,
        error: BaseException,
        expansion: ItemExpansion | None,
        verdict: StepVerdict | None = None,
    ) -> bool:
        claimed = self._claimed
        if verdict is None:
            self.called = error
        if isinstance(error, Snooze):
            await self._store(item, ItemStatus.RETRY, delay_us=int(error.delay * MICROSECONDS))
            return False
        found = verdict or step_verdict(error, item.attempt, step.options, claimed.runtime.parts.retry_policy)
        failure = claimed.runtime.tools.describe(found.error)
        described = (failure.error_class, failure.error)
        if isinstance(found, RetryStep):
            item.attempt += 1
            await self._store(item, ItemStatus.RETRY, described, delay_us=found.delay_us)
            return False
        if isinstance(found, RejectValue):
            reject = claimed.rejects.of_item(step, item.attempt, item.path, item.value, found.error, item.stored)
            rejects, new_items = [reject], []
            if expansion is not None:
                rejects, new_items = [*expansion.taken_rejects(), reject], expansion.unstored()
            try:
                await claimed.sink.offer(rejects)
            except RejectSinkError as refusal:
                return await self._failed(item, step, refusal, expansion)
            await self._store(item, ItemStatus.REJECTED, described, rejects=rejects, new_items=new_items)
            return True
        # Stored with the end of the claim: a failed item whose failure is noted nowhere would be dropped.
        self.failed.append(item.write(claimed.state.id, self._range.stage, ItemStatus.FAILED, described))
        self.failing = self.failing or item_failure_of(found.reason, failure, step.index, item.path, item.attempt)
        self.stopped = True
        return False

    async def _store(
        self,
        item: ClaimedItem,
        status: ItemStatus,
        described: tuple[str | None, str | None] = (None, None),
        *,
        delay_us: int | None = None,
        rejects: Sequence[NewReject] = (),
        new_items: Sequence[NewItem] = (),
        waits: Sequence[NewWait] = (),
    ) -> None:
        write = item.write(self._claimed.state.id, self._range.stage, status, described, delay_us)
        if waits:
            write = write._replace(due=waits[0].deadline)
        await self._write(Checkpoint(*self._claim, items=(write,), rejects=rejects, new_items=new_items, waits=waits))
        item.written()

    async def _write(self, write: Checkpoint) -> CheckpointAnswer:
        answer = await self._claimed.checkpoint(write)
        if answer.paused or answer.failing is not None or answer.status != OPEN:
            self.stopped = True
        return answer
