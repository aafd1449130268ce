"""A schedule as it is stored, and as users see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from windlass.domain.schedule_plan import Misfire, Overlap, SchedulePlan, parse_times
from windlass.errors import InvalidOptionError


class ScheduleState(StrEnum):
    """The states of a schedule."""

    ACTIVE = "active"
    """Its ticks fire."""
    PAUSED = "paused"
    """Its ticks do not fire, and are not caught up with."""
    ENDED = "ended"
    """It has no further tick."""
    RETIRED = "retired"
    """No node declares it any more: it does not fire and is not listed, until it is declared again."""


class ScheduleRow(NamedTuple):
    """The row of a schedule. Times are microseconds of the store's clock."""

    id: str
    key: str
    origin: str | None
    """`module:attribute` of the application that declares it, empty if that has no name; None: by `app.schedule`."""
    state: str
    was: str | None
    """The state in which it was retired."""
    cron: str
    zone: str
    anchor: int
    starts: int | None
    ends: int | None
    jitter_us: int
    misfire: str
    catch_up: int
    overlap: str
    call: str
    """The row of the job to come."""
    definition: str
    """Hash of the declaration."""
    next_at: int | None
    last_at: int | None
    skipped: int
    changed_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule, from `app.schedules.list()`. Times are aware UTC datetimes."""

    key: str
    cron: str
    """The expression as it was written: a cron expression, or `every(…)`."""
    zone: str
    target: str
    state: str
    """`active`, `paused`, or `ended`: no tick is left."""
    paused: bool
    misfire: Misfire
    overlap: Overlap
    skipped: int
    """Number of ticks that were missed or overlapped an earlier run, and so did not fire."""
    next_at: datetime | None
    """Its next tick; None while it is paused, and once it has ended."""
    last_at: datetime | None
    """The last tick that fired."""


@dataclass(frozen=True, slots=True)
class SkippedTick:
    """Ticks of a schedule that did not fire, for one reason."""

    key: str
    tick: int
    """The first of them."""
    why: str
    """`missed`, `overlap`, or `queue_full`."""
    count: int = 1


class Declaration(NamedTuple):
    """What a schedule is declared with, complete and checked."""

    key: str
    cron: str
    zone: str
    starts: int | None
    ends: int | None
    jitter_us: int
    misfire: str
    catch_up: int
    overlap: str
    call: str

    @property
    def definition(self) -> str:
        """A hash of all of it, the same in every process that runs the same code."""
        return blake2b(repr(tuple(self)).encode(), digest_size=16).hexdigest()


_times_of = lru_cache(maxsize=4096)(parse_times)
_NUMBERS: Final = ("anchor", "starts", "ends", "jitter_us", "next_at", "last_at", "skipped")
_MOST: Final = 1 << 61
"""Sums of numbers that are not greater fit into a column; as a time it is far behind the calendar."""


def plan_of(schedule: ScheduleRow) -> SchedulePlan:
    """Return when a schedule fires; raise `InvalidOptionError` if that cannot be known here."""
    _check_numbers(schedule)
    try:
        return SchedulePlan(
            times=_times_of(schedule.cron),
            zone=schedule.zone,
            anchor=schedule.anchor,
            starts=schedule.starts,
            ends=schedule.ends,
            jitter_us=schedule.jitter_us,
            misfire=Misfire(schedule.misfire),
            catch_up=schedule.catch_up,
        )
    except ValueError as error:  # a policy that this version does not know
        raise InvalidOptionError(f"schedule {schedule.key}: {error}") from error


def _check_numbers(schedule: ScheduleRow) -> None:
    """Refuse a damaged row before a statement for many schedules fails by its numbers."""
    for name in _NUMBERS:
        value: object = getattr(schedule, name)
        if value is not None and not (isinstance(value, int) and -_MOST <= value <= _MOST):
            raise InvalidOptionError(f"schedule {schedule.key}: its {name} is damaged: {value!r}")


def updated(
    declared: Declaration, before: ScheduleRow | None, origin: str | None, new_id: str, now: int
) -> ScheduleRow:
    """Return the row of a declared schedule. One that exists is changed in place: its id, pause and counts stay.

    Its next tick is planned anew only if its times have changed, or it had been retired or ended.
    """
    anchor = now if before is None else before.anchor
    row = ScheduleRow(
        id=new_id if before is None else before.id,
        key=declared.key,
        origin=origin,
        state=_state_before(before, origin),
        was=None,
        cron=declared.cron,
        zone=declared.zone,
        anchor=anchor if declared.starts is None else declared.starts,
        starts=declared.starts,
        ends=declared.ends,
        jitter_us=declared.jitter_us,
        misfire=declared.misfire,
        catch_up=declared.catch_up,
        overlap=declared.overlap,
        call=declared.call,
        definition=declared.definition,
        next_at=None if before is None else before.next_at,
        last_at=None if before is None else before.last_at,
        skipped=0 if before is None else before.skipped,
        changed_at=now,
    )
    if row.state == ScheduleState.PAUSED:
        return row._replace(next_at=None)
    if before is not None and before.state == ScheduleState.ACTIVE and _times(row) == _times(before):
        return row
    return resumed(row, now)


def resumed(row: ScheduleRow, now: int) -> ScheduleRow:
    """Return a schedule that goes on with its first tick after now, or has ended."""
    next_at = plan_of(row).next_after(now if row.last_at is None else max(now, row.last_at))
    state = ScheduleState.ENDED if next_at is None else ScheduleState.ACTIVE
    return row._replace(state=state.value, next_at=next_at)


def _state_before(before: ScheduleRow | None, origin: str | None) -> str:
    state = None if before is None else before.state
    if before is not None and state == ScheduleState.RETIRED and before.origin == origin:  # else it is another one
        state = before.was
    return ScheduleState.PAUSED if state == ScheduleState.PAUSED else ScheduleState.ACTIVE


def _times(row: ScheduleRow) -> tuple[object, ...]:
    return row.cron, row.zone, row.starts, row.ends


MOST_WAITING: Final = 100
"""How many runs of a schedule may wait for each other."""


class OverlapDecision(NamedTuple):
    """The ticks that fire although earlier runs may be live, and those that do not."""

    fired: tuple[int, ...]
    skipped: tuple[int, ...]
    why: str


def without_overlap(overlap: str, ticks: tuple[int, ...], live: int) -> OverlapDecision:
    """Decide which ticks fire while `live` runs of the schedule have not ended."""
    match overlap:
        case Overlap.SKIP:
            room, why = max(1 - live, 0), "overlap"
        case Overlap.QUEUE:
            room, why = max(MOST_WAITING + 1 - live, 0), "queue_full"  # one of them runs
        case _:
            room, why = len(ticks), ""
    return OverlapDecision(ticks[:room], ticks[room:], why)
