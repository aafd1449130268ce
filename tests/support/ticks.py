"""The judge of schedules: what was fired must follow from what nodes saw, whichever of them died on the way."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from tests.support.facts import rows
from windlass.domain.schedule_plan import due_ticks
from windlass.domain.stored_schedule import ScheduleRow, plan_of

LATE = 10_000_000
COLUMNS = ", ".join(ScheduleRow._fields)


class Pass(NamedTuple):
    """A pass over a due schedule, committed or not: the tick that was next, and the time."""

    key: str
    next_at: int
    now: int


def passes_of(lines: Sequence[str]) -> list[Pass]:
    """What was written down as `KEY,NEXT_AT,NOW`."""
    return [Pass(key, int(next_at), int(now)) for key, next_at, now in (line.split(",") for line in lines)]


def schedules_at(url: str) -> dict[str, ScheduleRow]:
    return {
        row.key: row
        for row in (ScheduleRow._make(found) for found in rows(url, f"SELECT {COLUMNS} FROM windlass_schedule"))
    }


def fired_at(url: str) -> dict[str, list[int]]:
    """The due times of all runs by the key of their schedule, from every table that a job can be in."""
    runs: dict[str, tuple[str, int]] = {}  # by id: a run that ends between the two reads is in both
    for table in ("hot", "done"):
        for job, target, due in rows(url, f"SELECT id, target, due FROM windlass_{table} WHERE target LIKE 'beat.%'"):
            runs[str(job)] = (target.removeprefix("beat."), due)
    found: dict[str, list[int]] = defaultdict(list)
    for key, due in runs.values():
        found[key].append(due)
    return {key: sorted(dues) for key, dues in found.items()}


def check_ticks(url: str, passes: Sequence[Pass]) -> int:
    """Check that every schedule has fired what `due_ticks` says of the passes that were committed.

    One pass of each tick that was next was committed: the others died before. Which one it was is not known, so what
    was fired must be what one of them decides. Returns the number of runs.
    """
    fired, total = fired_at(url), 0
    for key, row in schedules_at(url).items():
        seen: dict[int, set[int]] = defaultdict(set)
        for one in passes:
            if one.key == key:
                seen[one.next_at].add(one.now)
        dues = fired.get(key, [])
        assert len(set(dues)) == len(dues), f"{key}: a tick was fired twice"
        total += len(dues)
        if not seen:
            assert not dues, f"{key}: no node has seen it due"
            continue
        ends = _walk(row, min(seen), seen, tuple(dues))
        assert (row.next_at, row.skipped) in ends, f"{key}: {dues} does not follow from what was seen; {row}"
    return total


End = tuple[int | None, int]
"""The next tick, and how many were skipped."""


def _walk(row: ScheduleRow, first: int, seen: dict[int, set[int]], dues: tuple[int, ...]) -> set[End]:
    """Return where committed passes may have led, all of `dues` fired."""
    plan = plan_of(row)
    waiting: list[tuple[int | None, int, int]] = [(first, 0, 0)]
    known = set(waiting)
    ends: set[End] = set()
    while waiting:
        next_at, fired, skipped = waiting.pop()
        if fired == len(dues):
            ends.add((next_at, skipped))
        for now in seen.get(next_at, ()) if next_at is not None else ():
            decided = due_ticks(plan, next_at, now, LATE)
            if dues[fired : fired + len(decided.ticks)] != decided.ticks:
                continue
            step = (decided.next_at, fired + len(decided.ticks), skipped + decided.skipped)
            if step not in known:
                known.add(step)
                waiting.append(step)
    return ends
