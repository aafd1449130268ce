"""Plans for the upkeep of schedules, by one node at a time: retire what no node declares, forget old ticks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.clock import MICROSECONDS
from windlass.domain.stored_schedule import ScheduleRow, plan_of
from windlass.errors import WindlassError
from windlass.runtime.failpoints import reached
from windlass.stores.channels import SCHEDULES
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans.schedules import AT_ONCE, WRITES, lock_writes

DAY_US: Final = 86_400 * MICROSECONDS
TICK_AGE_US: Final = 3_600 * MICROSECONDS
"""After this time a tick is forgotten once its run has ended. `next_at` alone keeps it from firing again."""
RETIRED_AGE_US: Final = 30 * DAY_US


class LiveDeclaration(NamedTuple):
    """An application of which nodes are alive, and a version of its schedules."""

    origin: str
    digest: str | None
    matured: int
    """1: one of these nodes has been up for long enough to retire what it does not declare."""
    writes: int | None
    """How often schedules have been written: by nodes that may have left since."""


def declare(dialect: Dialect, digest: str, keys: Sequence[str]) -> Plan[None]:
    """Store the keys that a digest stands for, before a node registers with it."""
    yield Step("insert_declared", {"digest": digest, "names": dialect.names(keys)}, alone=True)


def anything_stored(dialect: Dialect) -> Plan[bool]:
    """Return whether there is any schedule."""
    del dialect
    return (yield Step("any_schedule", alone=True)) is not None


def live_declarations(dialect: Dialect, after_us: int) -> Plan[list[LiveDeclaration]]:
    """Return what live nodes declare; `after_us` is how long one must have been up to retire schedules."""
    del dialect
    rows = yield Step("live_declarations", {"after_us": after_us, "writes": WRITES})
    return [LiveDeclaration._make(row) for row in rows]


def retire(dialect: Dialect, origin: str) -> Plan[list[str]]:
    """Retire schedules of an application that none of its live nodes declares; return their keys.

    Their rows stay, with their pause, so that a rollback finds them as they were.
    """
    rows = yield Step("undeclared_schedules", {"origin": origin}, literals={"most": AT_ONCE})
    if rows:  # again, after those that store schedules now: a node may have started that declares them
        yield from lock_writes(dialect)
        rows = yield Step("undeclared_schedules", {"origin": origin}, literals={"most": AT_ONCE})
    if not rows:
        return []
    ids = {"ids": dialect.ids([schedule_id for schedule_id, _ in rows])}
    yield Step("retire_schedules", ids)
    yield Step("delete_live_keys", ids)
    yield from dialect.notify(SCHEDULES, "")
    reached("schedules.retired")
    return [key for _, key in rows]


def forget_ticks(dialect: Dialect) -> Plan[bool]:
    """Delete old ticks whose runs have ended; return whether there may be more."""
    del dialect
    count: int = yield Step("forget_ticks", {"age_us": TICK_AGE_US}, literals={"most": AT_ONCE})
    return count == AT_ONCE


def delete_old(dialect: Dialect) -> Plan[int]:
    """Delete schedules that were retired long ago, and keys of versions that no node runs any more."""
    del dialect
    count: int = yield Step("delete_retired", {"age_us": RETIRED_AGE_US})
    yield Step("delete_declared", {"age_us": DAY_US})
    return count


class Replanned(NamedTuple):
    """The result of planning a page of schedules anew."""

    moved: list[str]
    """Keys of schedules whose next tick is another one."""
    next_after: str | None
    """The last key of the page; None: there are no more."""


def replan(dialect: Dialect, after: str) -> Plan[Replanned]:
    """Plan the next ticks of schedules with a time zone anew: its rules may have changed with an update.

    A schedule that is fired, paused or changed meanwhile keeps what was written there.
    """
    rows = yield Step("zoned_schedules", {"after": after}, literals={"most": AT_ONCE})
    moved: list[str] = []
    for *columns, now in rows:
        schedule = ScheduleRow._make(columns)
        expected = _next_at(schedule, now)
        if expected is None or expected == schedule.next_at:
            continue
        params = {"id": schedule.id, "next_at": expected, "expected": schedule.next_at}
        if (yield Step("move_next_tick", params)):
            moved.append(schedule.key)
    if moved:
        yield from dialect.notify(SCHEDULES, "")
    return Replanned(moved, rows[-1][ScheduleRow._fields.index("key")] if len(rows) == AT_ONCE else None)


def _next_at(schedule: ScheduleRow, now: int) -> int | None:
    try:
        return plan_of(schedule).next_after(now if schedule.last_at is None else max(now, schedule.last_at))
    except WindlassError:  # this node does not know its zone
        return None
