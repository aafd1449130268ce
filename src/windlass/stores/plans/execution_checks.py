"""Plans for the checks of executions: executions that wait for nothing are found and made due.

A pass looks at a window of live jobs and returns where the next one begins, so that it costs the same however many
executions there are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from windlass.domain.ended import NO_EFFECTS, Effects
from windlass.domain.identity import FIRST_ID, LAST_ID
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import executions

WINDOW: Final = 5_000
"""Number of live jobs that one pass looks at."""
MOST: Final = 200
"""Number of executions that one transaction makes due."""


class CheckedExecutions(NamedTuple):
    """The result of one check."""

    effects: Effects = NO_EFFECTS
    found: int = 0
    """Number of executions and parts that had to be made due."""
    next_after: str = FIRST_ID


def wake_idle(dialect: Dialect, after: str) -> Plan[CheckedExecutions]:
    """Make executions and parts due that wait for nothing, and detach parts from jobs that no longer exist."""
    row = yield Step("hot_window", {"after": after}, literals={"window": WINDOW})
    window = {"after": after, "until": LAST_ID if row is None else row[0]}
    mains = [job for (job,) in (yield Step("left_waiting", window, literals={"most": MOST}))]
    parked = yield Step("left_parked", window, literals={"most": MOST})
    next_after = FIRST_ID if row is None else row[0]
    if not mains and not parked:
        return CheckedExecutions(next_after=next_after)
    held = yield from executions.lock_mains(dialect, {*mains, *(execution for _, execution in parked)})
    chosen = {"ids": dialect.ids(held)}
    yield Step("strand_left_parts", chosen)
    woken = yield Step("wake_mains", chosen)
    if parked:
        woken += yield Step("wake_parts", {"ids": dialect.ids([job for job, _ in parked])})
    reached("sweep.execution_woken")
    work = frozenset((queue, priority) for queue, priority in woken)
    return CheckedExecutions(Effects(work=work), len(woken), next_after)
