"""Plans that store and steer schedules.

What stores, retires or removes schedules locks one row first, so that keys are checked and written by one transaction
at a time. Firing does not wait for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from windlass.domain.admission import SCHEDULE, Holder
from windlass.domain.identity import new_job_id, new_job_ids
from windlass.domain.job import NewJob
from windlass.domain.lanes import schedule_gate
from windlass.domain.schedule_plan import Overlap
from windlass.domain.stored_schedule import Declaration, ScheduleRow, ScheduleState, resumed, updated
from windlass.runtime.failpoints import reached
from windlass.stores.channels import SCHEDULES, WORK
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans import jobs
from windlass.stores.plans.schedule_calls import run_of, trigger_number

WRITES: Final = "writes of schedules"
"""The row that is locked, among those of leases. It is not the duty's own: a node may hang while it holds that."""
AT_ONCE: Final = 500
"""How many schedules one transaction stores or lists."""
GATE_RETRY_US: Final = 5_000_000


class Stored(NamedTuple):
    """What a transaction has stored."""

    written: list[ScheduleRow]
    """Schedules that are new or have changed."""
    held: dict[str, Holder]
    """Keys that jobs hold, and so were not stored."""
    foreign: dict[str, str]
    """Keys of schedules that others declare, with their applications, and so were not stored."""


def lock_writes(dialect: Dialect) -> Plan[None]:
    """Wait until no other transaction stores, retires or removes schedules."""
    del dialect
    yield Step("create_lease", {"name": WRITES})
    yield Step("lock_schedule_writes", {"name": WRITES})


def store(
    dialect: Dialect, wanted: Sequence[Declaration], origin: str | None, since: int | None = None
) -> Plan[Stored]:
    """Store schedules of an application, or those of `app.schedule` (no origin). What is there already stays.

    New ones begin at `since`, or now.
    """
    yield from lock_writes(dialect)
    changed = yield from _changed(dialect, wanted, origin)
    if not changed:
        return Stored([], {}, {})
    names = {"names": dialect.names(sorted(one.key for one in changed))}
    before = {row.key: row for row in map(ScheduleRow._make, (yield Step("lock_schedules", names)))}
    foreign = {key: row.origin or "" for key, row in before.items() if _is_foreign(row, origin)}
    holders = yield from dialect.find_holders(sorted(one.key for one in changed))
    held = {key: holder for key, holder in holders.items() if holder.kind != SCHEDULE}
    (now,) = yield Step("store_now")
    free = [one for one in changed if one.key not in held and one.key not in foreign]
    rows = [
        updated(one, before.get(one.key), origin, new_id, since if since and one.key not in before else now)
        for one, new_id in zip(free, new_job_ids(len(free)), strict=True)
    ]
    yield from _write(dialect, rows, holders)
    reached("schedules.written", lambda: bool(rows))
    return Stored(rows, held, foreign)


def _changed(dialect: Dialect, wanted: Sequence[Declaration], origin: str | None) -> Plan[list[Declaration]]:
    rows = yield Step("schedule_definitions", {"names": dialect.names([one.key for one in wanted])})
    known = {key: (definition, of) for key, definition, state, of in rows if state != ScheduleState.RETIRED}
    return [one for one in wanted if known.get(one.key) != (one.definition, origin)]


def _is_foreign(row: ScheduleRow, origin: str | None) -> bool:
    """Return whether another application declares a schedule. One of `app.schedule` gives way to a decorator."""
    return row.state != ScheduleState.RETIRED and row.origin is not None and row.origin != origin


def _write(dialect: Dialect, rows: Sequence[ScheduleRow], holders: Mapping[str, Holder]) -> Plan[None]:
    if not rows:
        return
    yield Step("write_schedules", {"rows": json_text(rows)})
    yield Step("mark_schedule_writes", {"name": WRITES})
    live = sorted((row.key, row.id) for row in rows if row.state != ScheduleState.ENDED and row.key not in holders)
    if live and (yield from dialect.insert_keys("insert_schedule_keys", live)) != len(live):
        raise RestartPlanError  # a job has just taken one
    ended = [row.id for row in rows if row.state == ScheduleState.ENDED and row.key in holders]
    if ended:
        yield Step("delete_live_keys", {"ids": dialect.ids(ended)})
    gate = {"cap": 1, "rate": None, "per_us": None, "retry_us": GATE_RETRY_US}
    gates = [{"name": schedule_gate(row.id), **gate} for row in rows if row.overlap == Overlap.QUEUE]
    if gates:
        yield Step("set_gate", rows=gates)
    yield from dialect.notify(SCHEDULES, "")


# ---------------------------------------------------------------------- reading


def read(dialect: Dialect, after: str) -> Plan[list[ScheduleRow]]:
    """Return the next schedules in the order of their keys, without those that are retired."""
    del dialect
    rows = yield Step("list_schedules", {"after": after}, literals={"most": AT_ONCE}, alone=True)
    return [ScheduleRow._make(row) for row in rows]


def differs(dialect: Dialect, wanted: Declaration) -> Plan[bool]:
    """Return whether a schedule of `app.schedule` is not stored as it is wanted."""
    rows = yield Step("schedule_definitions", {"names": dialect.names([wanted.key])}, alone=True)
    return not any(
        (definition, origin) == (wanted.definition, None) and state != ScheduleState.RETIRED
        for _, definition, state, origin in rows
    )


def present(dialect: Dialect) -> Plan[int]:
    """Return the time by the store's clock: that of this machine does not count."""
    del dialect
    moment: int = (yield Step("store_now", alone=True))[0]
    return moment


def _locked(dialect: Dialect, key: str) -> Plan[ScheduleRow | None]:
    rows = yield Step("lock_schedules", {"names": dialect.names([key])})
    found = next(map(ScheduleRow._make, rows), None)
    return None if found is None or found.state == ScheduleState.RETIRED else found


# ---------------------------------------------------------------------- steering


def pause(dialect: Dialect, key: str) -> Plan[bool]:
    """Stop the ticks of a schedule; False if there is none, or it has ended."""
    row = yield from _locked(dialect, key)
    if row is None or row.state == ScheduleState.ENDED:
        return False
    if row.state == ScheduleState.ACTIVE:
        yield from _set_state(row._replace(state=ScheduleState.PAUSED.value, next_at=None))
    return True


def resume(dialect: Dialect, key: str) -> Plan[bool]:
    """Resume it with the first tick after now; return False if there is no such schedule, or it has ended."""
    row = yield from _locked(dialect, key)
    if row is None or row.state == ScheduleState.ENDED:
        return False
    if row.state == ScheduleState.PAUSED:
        (now,) = yield Step("store_now")
        row = resumed(row, now)
        yield from _set_state(row)
        if row.state == ScheduleState.ENDED:
            yield Step("delete_live_keys", {"ids": dialect.ids([row.id])})
        yield from dialect.notify(SCHEDULES, "")
    return True


def _set_state(row: ScheduleRow) -> Plan[None]:
    yield Step("set_schedule_state", {"id": row.id, "state": row.state, "next_at": row.next_at})


def trigger(dialect: Dialect, key: str) -> Plan[NewJob | None]:
    """Store a run that is due now, whatever the schedule's state and overlap; None if there is no such schedule.

    Ticks that must not overlap it, or wait behind it, know it like a run of a tick.
    """
    row = yield from _locked(dialect, key)
    if row is None:
        return None
    job = run_of(row, new_job_id(), None)
    if row.overlap != Overlap.ALLOW:
        yield Step("insert_ticks", {"rows": json_text([(row.id, trigger_number(job.id), job.id)])})
    yield from jobs.follow(dialect, [job], [job.queue])
    yield from dialect.notify(WORK, f" {job.queue}:{job.priority}")
    return job


class Removed(NamedTuple):
    """What became of a schedule that was to be removed."""

    found: bool
    declared_by: str | None = None
    """The application of which a live node declares it, so that it stays; it may have no name."""


def remove(dialect: Dialect, key: str) -> Plan[Removed]:
    """Remove a schedule and free its key, unless a live node declares it. Its runs stay.

    One that no node declares may be left by an application that was renamed: nothing else would ever retire it.
    """
    yield from lock_writes(dialect)
    row = yield from _locked(dialect, key)
    if row is None:
        return Removed(found=False)
    if row.origin is not None and (yield Step("declaring_node", {"origin": row.origin, "key": key})) is not None:
        return Removed(found=True, declared_by=row.origin)
    yield Step("delete_schedule", {"id": row.id})
    yield Step("delete_live_keys", {"ids": dialect.ids([row.id])})
    if not (yield Step("live_runs", {"ids": dialect.ids([row.id])})):  # else they still run one by one
        yield Step("delete_idle_gates", {"names": dialect.names([schedule_gate(row.id)])})
    return Removed(found=True)
