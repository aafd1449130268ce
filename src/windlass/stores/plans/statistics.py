"""Plans for counts of ended jobs: deltas, one per queue and flush, and the minutes they are added up to.

The deltas are written by the statements that end jobs, in their transaction, so that a count is never ahead of its jobs
nor behind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step

MINUTES_AT_ONCE = 60
"""Largest number of minutes, over all queues, that one batch deletes."""


class QueueTotals(NamedTuple):
    """The counts of a queue in some period."""

    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    runs: int = 0
    """Attempts that entered their body; the times are theirs."""
    wait_us: int = 0
    run_us: int = 0


NOTHING = QueueTotals()

Delta = tuple[int, str, int, int, int, int, int, int]
"""Minute, queue, and the fields of a `QueueTotals`."""


def roll_up(dialect: Dialect, most: int) -> Plan[int]:
    """Delete up to so many deltas and add them to their minutes; return how many there were."""
    del dialect
    deltas: list[Delta] = yield Step("take_deltas", literals={"chunk": most})
    reached("statistics.taken", lambda: bool(deltas))
    if deltas:
        yield Step("add_to_minutes", {"rows": json_text(add_up(deltas))})
    reached("statistics.before_commit", lambda: bool(deltas))
    return len(deltas)


def add_up(deltas: Iterable[Delta]) -> list[Delta]:
    """Return one row for each minute and queue, in that order, so that concurrent writers cannot deadlock."""
    sums: dict[tuple[int, str], list[Sequence[int]]] = defaultdict(list)
    for minute, queue, *counts in deltas:
        sums[minute, queue].append(counts)
    return [(*key, *QueueTotals(*map(sum, zip(*sums[key], strict=True)))) for key in sorted(sums)]


def forget(dialect: Dialect, minutes: int) -> Plan[bool]:
    """Delete some of what is older than so many minutes, oldest first; return True when there may be more."""
    del dialect
    oldest, now = yield Step("oldest_minute")
    limit = now - minutes
    if oldest is None or oldest >= limit:
        return False
    yield Step("forget_minutes", {"before": min(oldest + MINUTES_AT_ONCE, limit)})
    return True


def last_hour(dialect: Dialect) -> Plan[dict[str, QueueTotals]]:
    """Return the counts of each queue in this minute and the 59 before, added up or not yet."""
    del dialect
    rows = yield Step("last_hour")
    return {queue: QueueTotals(*counts) for queue, *counts in rows}
