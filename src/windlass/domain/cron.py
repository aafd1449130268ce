"""Times by cron expression, in a time zone.

Five fields are read by the rules of Unix cron (minute, hour, day-of-month, month, day-of-week; 0 and 7 are Sunday), six
or seven by those of Quartz (seconds first, year last; 1 is Sunday; `?`, `L`, `W`, `#`).

```python
Cron.parse("0 2 * * *").next_after(0, "UTC") == 7_200_000_000  # microseconds since 1970
```

When clocks change, it depends on the expression. *Fixed* times, where neither hour nor minute begins with `*`, fire
once on every day: in a gap when it ends, in an overlap the first time. *Flowing* ones follow real time: nothing in a
gap, both passes of an overlap.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Self

from windlass.domain.clock import MICROSECONDS
from windlass.domain.cron_days import Days
from windlass.domain.cron_fields import HOUR, MINUTE, MONTH, SECOND, YEAR, values
from windlass.domain.cron_phrases import phrase
from windlass.domain.zones import WallClock, wall_clock
from windlass.errors import InvalidOptionError

DAY: Final = 86_400
HORIZON_YEARS: Final = 100
"""An expression without a tick in so many years never fires."""
LONGEST: Final = 1_000

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_FIRST_YEAR, _LAST_YEAR = 2, 9_990  # every zone's clock is inside the calendar
_FIRST: Final = (date(_FIRST_YEAR, 1, 1).toordinal() - _EPOCH_DAY) * DAY
_LAST: Final = (date(_LAST_YEAR, 1, 1).toordinal() - _EPOCH_DAY) * DAY
FIRST_US, LAST_US = _FIRST * MICROSECONDS, _LAST * MICROSECONDS
"""No tick is before or after these, whatever it is given by."""
_SOME_DAY: Final = (date(2000, 1, 1).toordinal() - _EPOCH_DAY) * DAY
_EXAMPLE: Final = "expected a cron expression like '0 2 * * *' or '0 0 2 * * ?' (02:00 on every day)"


@dataclass(frozen=True, slots=True)
class Cron:
    """A checked expression; made by `parse`. Sorted values of each field, and the rules for days."""

    expression: str
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    months: tuple[int, ...]
    years: tuple[int, ...]
    """Empty: every year."""
    fixed: bool
    """Whether it names times of day, which fire once on each day whatever clocks do."""
    first_time: int = field(init=False)
    """Its first second of a day."""

    def __post_init__(self) -> None:
        first = (self.hours[0] * 60 + self.minutes[0]) * 60 + self.seconds[0]
        object.__setattr__(self, "first_time", first)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an expression; one that is wrong or can never fire is refused with the field that is wrong."""
        given: object = text
        if not isinstance(given, str) or len(given) > LONGEST or len(given.split()) not in (5, 6, 7):
            raise InvalidOptionError(
                f"{_EXAMPLE}, got {text!r}: it needs 5 fields (minute, hour, day-of-month, month, day-of-week), or 6 "
                "or 7 (second, minute, hour, day-of-month, month, day-of-week, year)"
            )
        fields = text.upper().split()
        try:
            found = cls._read(" ".join(text.split()), fields)
        except ValueError as error:
            raise InvalidOptionError(f"{_EXAMPLE}, got {text!r}: {error}") from None
        if found.next_wall(_SOME_DAY if not found.years else _FIRST) is None:
            within = "in the years it names" if found.years else f"within {HORIZON_YEARS} years"
            raise InvalidOptionError(
                f"{_EXAMPLE}, got {text!r}: it never fires, since its month has no such day-of-month {within}"
            )
        return found

    @classmethod
    def _read(cls, expression: str, fields: list[str]) -> Self:
        unix = len(fields) == 5
        second, minute, hour, day, month, weekday = (["0", *fields] if unix else fields)[:6]
        year = fields[6] if len(fields) == 7 else "*"
        return cls(
            expression=expression,
            seconds=tuple(sorted(values(second, SECOND))),
            minutes=tuple(sorted(values(minute, MINUTE))),
            hours=tuple(sorted(values(hour, HOUR))),
            days=Days.unix(day, weekday) if unix else Days.quartz(day, weekday),
            months=tuple(sorted(values(month, MONTH))),
            years=() if year == "*" else tuple(sorted(values(year, YEAR))),
            fixed=not hour.startswith("*") and not minute.startswith("*"),
        )

    def next_after(self, instant_us: int, zone: str) -> int | None:
        """Return the first tick after an instant, None if there is none; both are microseconds since 1970.

        "None" is what is found within 100 years, or in the years that the expression names.
        """
        instant = max(instant_us // MICROSECONDS, _FIRST)
        if instant > _LAST:
            return None
        find = self._next_fixed if self.fixed else self._next_flowing
        found = find(instant, wall_clock(zone))
        return None if found is None else found * MICROSECONDS

    def explain(self) -> str:
        """Return the expression in plain English: "at 02:00 every day"."""
        return phrase(self)

    def __str__(self) -> str:
        return self.expression

    def next_wall(self, wall: int) -> int | None:
        """Return the first matching time on the clock behind another one, whether or not it exists in a zone."""
        ordinal, second = divmod(wall + 1, DAY)
        today = date.fromordinal(_EPOCH_DAY + ordinal)
        for day in self._days_from(today):
            time = self._time_from(second) if day == today else self.first_time
            if time is not None:
                return (day.toordinal() - _EPOCH_DAY) * DAY + time
        return None

    def _next_fixed(self, instant: int, clock: WallClock) -> int | None:
        wall = clock.wall(instant)
        times = clock.occurrences(wall)
        if len(times) == 2 and instant == times[1]:  # all of the overlap has fired in its first pass
            change = clock.change_between(times[0], times[1])
            wall = change - 1 + clock.offset(change - 1)
        found = self.next_wall(wall)
        if found is None:
            return None
        times = clock.occurrences(found)
        return times[0] if times else clock.gap_end(found)

    def _next_flowing(self, instant: int, clock: WallClock) -> int | None:
        wall = clock.wall(instant)
        times = clock.occurrences(wall)
        second_pass = clock.change_between(*times) if len(times) == 2 and instant == times[0] else None
        while (found := self.next_wall(wall)) is not None:
            times = clock.occurrences(found)
            if second_pass is not None and (not times or times[0] >= second_pass):
                instant, wall = second_pass - 1, clock.wall(second_pass) - 1
                second_pass = None
            elif times:
                return times[0] if times[0] > instant else times[1]
            else:
                wall = clock.wall(clock.gap_end(found)) - 1
        return None

    def _days_from(self, first: date) -> Iterator[date]:
        """Yield the matching days, up to the horizon."""
        for year in self.years or range(first.year, min(first.year + HORIZON_YEARS, _LAST_YEAR) + 1):
            for month in self.months:
                if (year, month) < (first.year, first.month):
                    continue
                for day in self.days.of(year, month):
                    if day >= first.day or (year, month) > (first.year, first.month):
                        yield date(year, month, day)

    def _time_from(self, second: int) -> int | None:
        """Return the first matching second of a day that is not before another one."""
        hour, rest = divmod(second, 3600)
        minute, second = divmod(rest, 60)
        for matching in self.hours[bisect_left(self.hours, hour) :]:
            if matching > hour:
                return (matching * 60 + self.minutes[0]) * 60 + self.seconds[0]
            for matching_minute in self.minutes[bisect_left(self.minutes, minute) :]:
                if matching_minute > minute:
                    return (hour * 60 + matching_minute) * 60 + self.seconds[0]
                at = bisect_left(self.seconds, second)
                if at < len(self.seconds):
                    return (hour * 60 + minute) * 60 + self.seconds[at]
        return None
