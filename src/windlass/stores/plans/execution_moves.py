"""The plan that pauses and resumes executions."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.domain.execution import LogRow
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import items
from windlass.stores.plans.executions import lock_mains, log_row


def steer(dialect: Dialect, ids: Sequence[str], *, pause: bool) -> Plan[tuple[list[str], frozenset[tuple[str, int]]]]:
    """Pause or resume executions; return those that were changed, and levels that have new work."""
    yield from lock_mains(dialect, ids)
    chosen = {"ids": dialect.ids(ids)}
    kind, statement = ("paused", "pause_executions") if pause else ("resumed", "resume_executions")
    rows = yield Step(statement, chosen)
    logged = [
        log_row(execution, version, LogRow(kind, cursor, attempt), stage, None)
        for execution, version, cursor, attempt, stage in rows
    ]
    if logged:
        yield Step("insert_transitions", dialect.bulk("log_rows", logged))
    woken: list[tuple[str, int]] = []
    if rows and not pause:
        parts = yield from items.live_jobs(dialect, [row[0] for row in rows])
        woken = yield Step("wake_resumed", {"ids": dialect.ids(sorted({*(row[0] for row in rows), *parts}))})
    return [row[0] for row in rows], frozenset((queue, priority) for queue, priority in woken)
