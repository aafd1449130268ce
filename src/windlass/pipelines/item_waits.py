"""The waits of items for answers from outside: read page by page, and expired together."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.domain.execution_items import ItemRow, ItemStatus
from windlass.domain.external_wait import LastWait, NewWait, WaitKey, WaitStatus
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.pipelines.claimed_item import ClaimedItem
from windlass.pipelines.definition import PipelineStep
from windlass.pipelines.interactions import Interactions, is_answered, is_waiting
from windlass.pipelines.step_context import StepContext
from windlass.stores.plans.executions import Checkpoint


class ItemWaits:
    """The waits of the items that one claim runs."""

    def __init__(self, claimed: ClaimedExecution, steps: Sequence[PipelineStep], *, ahead: bool) -> None:
        self._claimed = claimed
        self._steps = steps
        """Steps that wait for external answers."""
        self._ahead = ahead
        """Whether pages hold items whose deadline has not passed."""
        self._interactions = Interactions(claimed)
        self._rounds: dict[tuple[int, str], LastWait] = {}

    async def of_page(self, page: Sequence[ItemRow]) -> list[ItemRow]:
        """Read the waits of a page of items; return it without those that were answered since it was read."""
        if not self._steps or not page:
            return list(page)
        for step in self._steps:
            found = await self._interactions.rounds(step, page[0].path, page[-1].path)
            self._rounds.update({(step.index, path): last for path, last in found.items()})
        for row in page:
            self._note_damage(row)
        overdue = {key for row in page if (key := self._overdue(row)) is not None}
        claim, gone = self._claimed.context.claim, set[str]()
        if overdue:
            held = (claim.job_id, claim.fence, self._claimed.state.id)
            answer = await self._claimed.checkpoint(Checkpoint(*held, expires=tuple(sorted(overdue))))
            gone = {key.path for key in overdue - answer.expired}
            for key in overdue & answer.expired:
                position = (key.step, key.path)
                self._rounds[position] = self._rounds[position]._replace(status=WaitStatus.EXPIRED)
        answered = {row.path for row in page if row.status == ItemStatus.OUTSIDE and is_answered(self._of(row))}
        return [row for row in page if row.path not in gone | answered]

    def _of(self, row: ItemRow) -> LastWait | None:
        return self._rounds.get((row.cursor, row.path))

    def _note_damage(self, row: ItemRow) -> None:
        """Have a wait end with its item if it has another deadline: it would be looked at again and again."""
        last = self._of(row)
        if row.status == ItemStatus.OUTSIDE and last is not None and is_waiting(last) and last.deadline != row.due:
            ended = last._replace(status=WaitStatus.EXPIRED, deadline=row.due or 0)
            self._rounds[row.cursor, row.path] = ended

    def _overdue(self, row: ItemRow) -> WaitKey | None:
        last = self._of(row)
        if row.status != ItemStatus.OUTSIDE or last is None or last.closed or last.status != WaitStatus.WAITING:
            return None
        late = not self._ahead or last.deadline <= self._claimed.store_now()
        return WaitKey(self._claimed.state.id, row.cursor, row.path, last.round) if late else None

    def last(self, step: PipelineStep, item: ClaimedItem) -> LastWait | None:
        """Return the last round of an item's wait at a step."""
        return self._rounds.get((step.index, item.path))

    def give(self, step: PipelineStep, item: ClaimedItem, last: LastWait) -> None:
        """Replace an item by the answer to its wait."""
        item.value = self._interactions.answer(step, last)
        item.number, item.text = last.type or 0, last.answer

    async def ask(self, step: PipelineStep, item: ClaimedItem, context: StepContext) -> NewWait:
        """Call the body, which sends a request out; return the wait for its answer."""
        interaction = await self._interactions.begin(step, item.path, self.last(step, item))
        context.interaction = interaction
        return self._interactions.wait(step, interaction, await self._claimed.call(step, context, item.value))
