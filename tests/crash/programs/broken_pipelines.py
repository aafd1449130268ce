"""Builds of pipelines that are broken on purpose, which the invariants must find."""

from collections.abc import Callable
from typing import Any

from windlass.domain.execution import OPEN
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import executions, items


def _no_fence() -> None:
    """A checkpoint is written whoever holds the claim."""
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


BUILDS: dict[str, Callable[[], None]] = {
    "no fence": _no_fence,
    "parts end first": _parts_end_first,
    "no lock": _no_lock,
}


def break_build(name: str) -> None:
    """Break this process's build in a way that `BUILDS` names; an empty name leaves it sound."""
    if name:
        BUILDS[name]()
