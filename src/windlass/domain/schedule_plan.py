"""When a schedule fires: its ticks, and which of the due ones. Pure: the caller says what time it is.

Times are whole microseconds since 1970, of the store's clock. A plan says when the next tick is; `due_ticks` which of
those that are due fire, and which were missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple
from uuid import UUID

from windlass.domain.cron import LAST_US, Cron
from windlass.domain.intervals import Every
from windlass.domain.zones import wall_clock
from windlass.errors import InvalidOptionError

CATCH_UP: Final = 11
"""How many missed ticks `Misfire.CATCH_UP` fires by default."""
MAX_CATCH_UP: Final = 1_000
"""They are stored in one transaction, which must stay short."""
MAX_COUNTED: Final = 1_000
"""Missed ticks of a cron expression are counted one by one, so no further than this; those of intervals all."""
MAX_COUNTED_AT_ONCE: Final = 10_000
"""In one transaction, which fires many schedules."""


class Misfire(StrEnum):
    """Which ticks fire that were missed, because no worker ran or all were stuck.

    Of the ticks that are due, all but the last are missed, and the last if it is over 10 seconds late
    (`recurring.misfire_after`).
    """

    CATCH_UP = "CATCH_UP"
    """The oldest ones, up to a number (11 unless `catch_up=` says another)."""
    FIRE_ONCE = "FIRE_ONCE"
    """The oldest one, for all."""
    SKIP = "SKIP"
    """None."""


class Overlap(StrEnum):
    """Whether a tick fires while an earlier run of its schedule has not ended."""

    ALLOW = "ALLOW"
    """It does, and both run at once."""
    SKIP = "SKIP"
    """It does not."""
    QUEUE = "QUEUE"
    """It does, and its run waits for the earlier one."""


def parse_times(text: str) -> Cron | Every:
    """Read a cron expression or an interval, `every(hours=1)`: what `str` of either returns."""
    return Every.parse(text) if str(text).lstrip().startswith("every(") else Cron.parse(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePlan:
    """The ticks of a schedule, and what becomes of missed ones.

    ```python
    plan = SchedulePlan(times=Cron.parse("0 2 * * *"), zone="Europe/Berlin")
    plan.next_after(0) == 3_600_000_000  # 02:00 in Berlin, 1970-01-01
    ```
    """

    times: Cron | Every
    zone: str = "UTC"
    anchor: int | None = None
    """The tick from which an interval is counted: the schedule's start, else its creation."""
    starts: int | None = None
    """No tick is before this; one may be at it."""
    ends: int | None = None
    """No tick is after this; one may be at it."""
    jitter_us: int = 0
    misfire: Misfire = Misfire.CATCH_UP
    catch_up: int = CATCH_UP

    def __post_init__(self) -> None:
        wall_clock(self.zone)
        if isinstance(self.times, Every) and self.anchor is None:
            raise InvalidOptionError(f"{self.times} needs an anchor: the schedule's start, or its creation")
        if self.starts is not None and self.ends is not None and self.ends < self.starts:
            raise InvalidOptionError("a schedule's end must not be before its start; swap them, or leave one out")
        if self.jitter_us < 0:
            raise InvalidOptionError(f"jitter must be seconds >= 0, got {self.jitter_us / 1_000_000:g}")
        catch_up: object = self.catch_up
        if isinstance(catch_up, bool) or not isinstance(catch_up, int) or not 1 <= catch_up <= MAX_CATCH_UP:
            raise InvalidOptionError(f"catch_up must be a whole number from 1 to {MAX_CATCH_UP}, got {catch_up!r}")

    def next_after(self, instant: int) -> int | None:
        """Return the first tick after an instant; None: there is none any more."""
        if self.starts is not None:
            instant = max(instant, self.starts - 1)
        if isinstance(self.times, Cron):
            found = self.times.next_after(instant, self.zone)
        else:
            assert self.anchor is not None, "checked above"
            found = self.times.next_after(instant, self.anchor)
        last = LAST_US if self.ends is None else min(self.ends, LAST_US)
        return None if found is None or found > last else found

    def last_between(self, after: int, until: int) -> int | None:
        """Return the last tick after one instant and not after another, by halving: however many there are."""
        found = self.next_after(after)
        if found is None or found > until:
            return None
        middle, empty_from = found, until
        while True:
            later = self.next_after(middle)
            if later is not None and later <= until:
                found = later
            elif middle == found:
                return found
            else:
                empty_from = middle
            middle = (found + empty_from) // 2


class DueTicks(NamedTuple):
    """What to fire, when to look again, and how many due ticks do not fire."""

    ticks: tuple[int, ...]
    next_at: int | None
    """The first tick after now, which is the next one whatever was missed; None: the schedule has ended."""
    skipped: int
    """Exact for intervals; for cron expressions up to a limit, which means that many or more."""


def due_ticks(
    plan: SchedulePlan, next_at: int | None, now: int, misfire_after_us: int, most_counted: int = MAX_COUNTED
) -> DueTicks:
    """Decide which ticks fire at `now`, if `next_at` is the first that has not been fired.

    The work is bounded however long ago that is: missed ticks are counted up to `most_counted`. While the clock is
    behind `next_at`, also because it was set back, nothing fires: what has been fired does not fire again.
    """
    if next_at is None or next_at > now:
        return DueTicks((), next_at, 0)
    later = plan.next_after(next_at)
    if later is None or later > now:  # one is due, as nearly always
        missed = plan.misfire is Misfire.SKIP and now - next_at > misfire_after_us
        return DueTicks(() if missed else (next_at,), later, int(missed))
    fired = _fired(plan, next_at, now, misfire_after_us)
    return DueTicks(fired, plan.next_after(now), _count(plan, next_at, now, fired, most_counted))


def counted_each(schedules: int) -> int:
    """Return up to how many missed ticks of each of so many schedules are counted while their rows are locked.

    One takes about 20 µs, so that those of 200 schedules would take seconds, in which a database may time out.
    """
    return min(MAX_COUNTED, max(MAX_COUNTED_AT_ONCE // max(schedules, 1), 1))


def jitter_of(schedule_id: UUID, tick: int, most_us: int) -> int:
    """Return the delay of a tick's run: any from 0 to `most_us`, always the same one for a tick of a schedule."""
    digest = blake2b(b"%b%d" % (schedule_id.bytes, tick), digest_size=8).digest()
    return int.from_bytes(digest) % (most_us + 1)


def _fired(plan: SchedulePlan, next_at: int, now: int, misfire_after_us: int) -> tuple[int, ...]:
    match plan.misfire:
        case Misfire.CATCH_UP:
            return _first_ticks(plan, next_at, now, plan.catch_up)
        case Misfire.FIRE_ONCE:
            return (next_at,)
        case Misfire.SKIP:
            last = plan.last_between(max(now - misfire_after_us, next_at) - 1, now)
            return () if last is None else (last,)


def _first_ticks(plan: SchedulePlan, next_at: int, now: int, most: int) -> tuple[int, ...]:
    ticks: list[int] = []
    tick: int | None = next_at
    while tick is not None and tick <= now and len(ticks) < most:
        ticks.append(tick)
        tick = plan.next_after(tick)
    return tuple(ticks)


def _count(plan: SchedulePlan, next_at: int, now: int, fired: tuple[int, ...], most: int) -> int:
    """Return how many ticks are due and not fired."""
    if isinstance(plan.times, Every):
        until = now if plan.ends is None else min(now, plan.ends)
        return max((until - next_at) // plan.times.interval_us + 1 - len(fired), 0)
    return len(_first_ticks(plan, next_at, now, most + len(fired))) - len(fired)
