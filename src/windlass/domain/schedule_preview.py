"""The next ticks of a plan, with notes where a clock change moves, drops or repeats one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from windlass.domain.clock import MICROSECONDS
from windlass.domain.cron import FIRST_US, Cron
from windlass.domain.intervals import Every
from windlass.domain.schedule_plan import SchedulePlan
from windlass.domain.zones import WallClock, wall_clock

DAY = 86_400


class PreviewedTick(NamedTuple):
    """A tick, what the clock of its zone shows then, and what a clock change does to it."""

    at_us: int
    wall: datetime
    """In the plan's zone."""
    note: str
    """Empty on ordinary days."""


def preview(plan: SchedulePlan, start: int, count: int) -> list[PreviewedTick]:
    """Return the first ticks after an instant, fewer if there are not that many."""
    clock = wall_clock(plan.zone)
    found: list[PreviewedTick] = []
    before = max(start, FIRST_US)
    tick = plan.next_after(before)
    while tick is not None and len(found) < count:
        wall = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick)).astimezone(clock.zone)
        note = _note(plan.times, before // MICROSECONDS, tick // MICROSECONDS, clock)
        found.append(PreviewedTick(tick, wall, note))
        before, tick = tick, plan.next_after(tick)
    return found


def _note(times: Cron | Every, before: int, tick: int, clock: WallClock) -> str:
    if isinstance(times, Every):
        return ""  # real time knows no clock changes
    return _fixed_note(times, tick, clock) if times.fixed else _flowing_note(times, before, tick, clock)


def _fixed_note(cron: Cron, tick: int, clock: WallClock) -> str:
    """Return the note for a fixed time: it was moved out of a gap, or occurs twice and fires once."""
    wall = clock.wall(tick)
    if len(clock.occurrences(wall)) == 2:
        return f"{_shown(wall)} occurs twice: fires the first time only"
    if clock.offset(tick - 1) >= clock.offset(tick):
        return ""
    missing = cron.next_wall(clock.wall(tick - 1))
    if missing is None or clock.occurrences(missing):
        return ""
    return f"moved from {_shown(missing, wall)}, which does not exist"


def _flowing_note(cron: Cron, before: int, tick: int, clock: WallClock) -> str:
    """Return the note for a time that follows real time: it occurs twice, or others before it were dropped."""
    wall = clock.wall(tick)
    times = clock.occurrences(wall)
    if len(times) == 2:
        return f"{_shown(wall)} occurs twice: the {'first' if tick == times[0] else 'second'} time"
    missing = cron.next_wall(clock.wall(before))
    if missing is None or clock.occurrences(missing):
        return ""
    change = clock.gap_end(missing)
    begin, end = clock.wall(change - 1) + 1, clock.wall(change)
    return f"none from {_shown(begin, wall)} to {_shown(end, wall)}: the clock goes forward"


def _shown(wall: int, beside: int | None = None) -> str:
    """Return the time of a wall time, with the date if it is on another day than the one `beside` it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=wall)
    date = f"{moment:%Y-%m-%d} " if beside is not None and beside // DAY != wall // DAY else ""
    return f"{date}{moment:%H:%M:%S}" if moment.second else f"{date}{moment:%H:%M}"
