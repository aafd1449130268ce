"""The plan that deletes executions that ended long ago, with their logs, items and parts."""

from __future__ import annotations

from typing import Final

from windlass.domain.execution import ExecutionStatus
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans.dead_letters import FIRST, Purged

MOST_ROWS: Final = 5_000
"""Number of items, and of rows of logs, that one transaction deletes."""
_WITHOUT_LETTER: Final = (ExecutionStatus.SUCCEEDED, ExecutionStatus.CANCELED, ExecutionStatus.FAILED)


def purge(dialect: Dialect, older_than_us: int, limit: int, after: tuple[int, str] = FIRST) -> Plan[Purged]:
    """Delete up to `limit` executions of each status that ended so long ago.

    Those of very many items go in several batches, items first. `after`: the end and the id of the last dead execution
    that was checked; one whose dead letter is still there stays.
    """
    found: list[tuple[str, int]] = []
    more = False
    for status in _WITHOUT_LETTER:
        old = yield from _old(status, older_than_us, limit, FIRST)
        found += [(row[0], row[2]) for row in old]
        more = more or len(old) == limit
    dead = yield from _old(ExecutionStatus.DLQ, older_than_us, limit, after)
    if dead:
        kept = {row[0] for row in (yield Step("with_letters", {"ids": dialect.ids([row[0] for row in dead])}))}
        found += [(row[0], row[2]) for row in dead if row[0] not in kept]
        more = more or len(dead) == limit
    here = (dead[-1][1], dead[-1][0]) if dead else after
    if not found:
        return Purged(0, here if more else None)
    ids, bound = {"ids": dialect.ids(sorted(one for one, _ in found))}, {"window": MOST_ROWS}
    of_waits = ("purge_external_waits",) if any(awaits for _, awaits in found) else ()
    for statement in ("purge_items", "purge_transitions", *of_waits):
        if (yield Step(statement, ids, literals=bound)) == MOST_ROWS:
            return Purged(0, after)  # the rest goes with the next batches
    yield Step("purge_parts", ids)
    yield Step("purge_executions", ids)
    return Purged(len(found), here if more else None)


def _old(
    status: ExecutionStatus, older_than_us: int, limit: int, after: tuple[int, str]
) -> Plan[list[tuple[str, int, int]]]:
    params = {"status": status.value, "older_than_us": older_than_us, "at": after[0], "id": after[1]}
    rows = yield Step("old_executions", params, literals={"window": limit})
    return [(row[0], row[1], row[2]) for row in rows]
