"""Builds of pipelines that are broken on purpose, which the invariants must find."""

from collections.abc import Callable
from typing import Any

from windlass.domain.execution import OPEN
from windlass.pipelines.final_items import FinalItems
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import executions, handoffs, items


def _no_fence() -> None:
    """Writes a checkpoint even if another node holds the claim."""
    sound = executions.checkpoint

    def checkpoint(dialect: Any, writes: Any) -> Plan[Any]:
        plan, answer = sound(dialect, writes), None
        try:
            while True:
                step = plan.send(answer)
                answer = yield step
                if step.name == "lock_pipeline_claims":
                    claims = {(one.job_id, one.fence, one.execution_id) for one in writes}
                    lost = set(range(len(claims))) - {row[0] for row in answer}
                    answer = [*answer, *((number, 0, OPEN, 0, None) for number in lost)]
        except StopIteration as stop:
            return stop.value

    executions.checkpoint = checkpoint


def _parts_end_first() -> None:
    """A part ends, and its execution goes on, while its items are not written."""

    def to_run(dialect: Any, part: tuple[str, int, str, str], most: int, ahead_us: int = 0) -> Plan[list[Any]]:
        del dialect, part, most, ahead_us
        yield Step("store_now", autocommit=True)
        return []

    def next_due(dialect: Any, part: tuple[str, int, str, str], *, ordered: bool = False) -> Plan[int | None]:
        del dialect, part, ordered
        yield Step("store_now", autocommit=True)
        return None

    items.to_run, items.next_due = to_run, next_due


def _no_lock() -> None:
    """The end of a part does not lock the execution, and looks at its parts before the others have committed."""

    def lock_mains(dialect: Any, ids: Any) -> Plan[list[str]]:
        del dialect
        yield Step("store_now", autocommit=True)
        return sorted(ids)

    executions.lock_mains = lock_mains


def _published_apart() -> None:
    """Items are handed over in a transaction of their own, before that of the success."""
    of_value, next_chunk = FinalItems.of_value, FinalItems.next_chunk

    async def hand_over(self: FinalItems, outgoing: Any) -> Any:
        if outgoing:
            await self._claimed.runtime.database.arun(handoffs.publish, outgoing)
        return None if outgoing is None else ()

    async def value_apart(self: FinalItems, value: Any) -> Any:
        return await hand_over(self, await of_value(self, value))

    async def chunk_apart(self: FinalItems) -> Any:
        return await hand_over(self, await next_chunk(self))

    FinalItems.of_value, FinalItems.next_chunk = value_apart, chunk_apart  # type: ignore[method-assign]


def _keys_ignored() -> None:
    """The key of a hand-off does not make a repeat known."""
    sound, seen = handoffs._NewHandoff.row, 5

    def row(self: Any, *args: Any, **options: Any) -> tuple[object, ...]:
        values = sound(self, *args, **options)
        return (*values[:seen], None, *values[seen + 1 :])

    handoffs._NewHandoff.row = row  # type: ignore[method-assign]


BUILDS: dict[str, Callable[[], None]] = {
    "no fence": _no_fence,
    "parts end first": _parts_end_first,
    "no lock": _no_lock,
    "published apart": _published_apart,
    "keys ignored": _keys_ignored,
}


def break_build(name: str) -> None:
    """Break this process's build in a way that `BUILDS` names; an empty name leaves it sound."""
    if name:
        BUILDS[name]()
