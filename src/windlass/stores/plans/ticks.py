"""The plan that fires schedules: any node runs it, and each tick fires once.

Firing a tick and writing the next one are one transaction, under the schedule's row lock. The number of statements does
not depend on how many schedules are due.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from windlass.domain.ended import NO_EFFECTS, Effects
from windlass.domain.identity import new_job_ids
from windlass.domain.job import NewJob
from windlass.domain.schedule_plan import DueTicks, Overlap, counted_each, due_ticks
from windlass.domain.stored_schedule import OverlapDecision, ScheduleRow, SkippedTick, plan_of, without_overlap
from windlass.errors import WindlassError
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import jobs
from windlass.stores.plans.schedule_calls import run_of

MOST: Final = 200
"""How many schedules one transaction fires."""


class NextTick(NamedTuple):
    """The first tick of all schedules, by the store's clock."""

    next_at: int
    now: int


class Unplannable(NamedTuple):
    """A schedule that cannot be planned here: its zone is unknown, or its row is damaged."""

    schedule_id: str
    key: str
    why: str


class Fired(NamedTuple):
    """What one transaction has fired."""

    advanced: int = 0
    """Number of schedules whose next tick was written."""
    runs: int = 0
    """Number of jobs that were stored."""
    effects: Effects = NO_EFFECTS
    unplannable: Sequence[Unplannable] = ()


class _Due(NamedTuple):
    schedule: ScheduleRow
    ticks: DueTicks
    missed: int
    """The first tick that was missed and does not fire."""


def next_tick(dialect: Dialect, aside: Sequence[str]) -> Plan[NextTick | None]:
    """Return when the next schedule is due, except for those set aside; None: none is active."""
    row = yield Step("next_tick", {"ids": dialect.ids(aside)}, alone=True)
    return None if row is None else NextTick._make(row)


def fire(
    dialect: Dialect, aside: Sequence[str], misfire_after_us: int, known_queues: Collection[str] = ()
) -> Plan[Fired]:
    """Fire schedules that are due, except for those set aside. What other nodes are firing is not waited for."""
    rows = yield Step("due_schedules", {"ids": dialect.ids(aside)}, literals={"most": MOST})
    due: list[_Due] = []
    unplannable: list[Unplannable] = []
    for *columns, now in rows:
        schedule = ScheduleRow._make(columns)
        try:
            due.append(_planned(schedule, now, misfire_after_us, counted_each(len(rows))))
        except (WindlassError, ValueError) as error:  # also an id that is none
            unplannable.append(Unplannable(schedule.id, schedule.key, str(error)))
    if not due:
        return Fired(unplannable=unplannable)
    overlapping = yield from _overlapping(dialect, due)
    stored = yield from _store_runs(dialect, due, overlapping, known_queues)
    yield from _advance(dialect, due, overlapping)
    reached("tick.before_commit", lambda: bool(stored))
    work = frozenset((job.queue, job.priority) for job in stored)
    effects = Effects(work=work, skipped=tuple(_skipped(due, overlapping)))
    return Fired(len(due), len(stored), effects, unplannable)


def _planned(schedule: ScheduleRow, now: int, misfire_after_us: int, most_counted: int) -> _Due:
    plan = plan_of(schedule)
    run_of(schedule, schedule.id, now)  # a call that cannot be stored must not hold up the others
    ticks = due_ticks(plan, schedule.next_at, now, misfire_after_us, most_counted)
    first = schedule.next_at or 0
    missed = first
    if ticks.skipped and first in ticks.ticks:
        missed = plan.next_after(ticks.ticks[-1]) or first
    return _Due(schedule, ticks, missed)


def _overlapping(dialect: Dialect, due: Sequence[_Due]) -> Plan[list[OverlapDecision]]:
    """Decide which ticks fire by the runs that are live."""
    asked = [one.schedule.id for one in due if one.schedule.overlap != Overlap.ALLOW and one.ticks.ticks]
    live = dict((yield Step("live_runs", {"ids": dialect.ids(asked)}))) if asked else {}
    return [without_overlap(one.schedule.overlap, one.ticks.ticks, live.get(one.schedule.id, 0)) for one in due]


def _store_runs(
    dialect: Dialect, due: Sequence[_Due], overlapping: Sequence[OverlapDecision], known_queues: Collection[str]
) -> Plan[list[NewJob]]:
    """Store the jobs of ticks that were never fired."""
    pairs = [(one.schedule, tick) for one, fits in zip(due, overlapping, strict=True) for tick in fits.fired]
    if not pairs:
        return []
    # In the order of ticks: ids grow with them, and jobs that are due at once run in the order of their ids.
    pairs.sort(key=lambda pair: pair[1])
    runs = [(schedule, tick, job_id) for (schedule, tick), job_id in zip(pairs, new_job_ids(len(pairs)), strict=True)]
    rows = json_text([(schedule.id, tick, job_id) for schedule, tick, job_id in runs])
    free = {job_id for (job_id,) in (yield Step("insert_ticks", {"rows": rows}))}
    stored = [run_of(schedule, job_id, tick) for schedule, tick, job_id in runs if job_id in free]
    if stored:
        new_queues = {job.queue for job in stored}.difference(known_queues)
        yield from jobs.follow(dialect, stored, sorted(new_queues))
    return stored


def _advance(dialect: Dialect, due: Sequence[_Due], overlapping: Sequence[OverlapDecision]) -> Plan[None]:
    rows = [
        (one.schedule.id, one.ticks.next_at, fits.fired[-1] if fits.fired else None, _count(one, fits))
        for one, fits in zip(due, overlapping, strict=True)
    ]
    yield Step("advance_schedules", {"rows": json_text(rows)})
    ended = [one.schedule.id for one in due if one.ticks.next_at is None]
    if ended:
        yield Step("delete_live_keys", {"ids": dialect.ids(ended)})


def _count(one: _Due, fits: OverlapDecision) -> int:
    return one.ticks.skipped + len(fits.skipped)


def _skipped(due: Sequence[_Due], overlapping: Sequence[OverlapDecision]) -> Sequence[SkippedTick]:
    found: list[SkippedTick] = []
    for one, fits in zip(due, overlapping, strict=True):
        key = one.schedule.key
        if one.ticks.skipped:
            found.append(SkippedTick(key, one.missed, "missed", one.ticks.skipped))
        found += (SkippedTick(key, tick, fits.why) for tick in fits.skipped)
    return found
