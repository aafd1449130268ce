"""Counts the statements of a plan by looking on while it runs."""

from collections.abc import Callable, Sequence
from typing import Any

from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step


def recorded(steps: list[Step], plan: Callable[..., Plan[Any]]) -> Callable[..., Plan[Any]]:
    """The same plan; every step it takes is also added to `steps`."""

    def onlooker(dialect: Dialect, *args: Any, **kwargs: Any) -> Plan[Any]:
        inner = plan(dialect, *args, **kwargs)
        answer = None
        while True:
            try:
                step = inner.send(answer)
            except StopIteration as stop:
                return stop.value
            steps.append(step)
            answer = yield step

    return onlooker


def statements(steps: Sequence[Step]) -> int:
    """How often the database is asked: once per step, or once per row of a step."""
    return sum(1 if step.rows is None else len(step.rows) for step in steps)
