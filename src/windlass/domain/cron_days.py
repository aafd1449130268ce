"""The days on which a cron expression fires: its day-of-month and day-of-week fields together."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from windlass.domain.cron_fields import ANY, QUARTZ_DAY, QUARTZ_WEEKDAY, UNIX_DAY, UNIX_WEEKDAY, span, values

SATURDAY: Final = 6
_ALL_DAYS: Final = frozenset(range(1, 32))
_ALL_WEEKDAYS: Final = frozenset(range(7))
_FROM_LAST: Final = re.compile(r"L(?:-(?P<before>[0-9]{1,2}))?(?P<nearest>W)?")
_NEAREST: Final = re.compile(r"(?P<day>[0-9]{1,2})W")
_OF_MONTH: Final = re.compile(r"(?P<weekday>[0-9A-Z]+?)(?:L|#(?P<number>[0-9]+))")


class LastDay(NamedTuple):
    """`L`, `L-3`, `LW`: so many days before the last one of a month, or the working day nearest to that."""

    before: int
    nearest: bool


class WeekdayOfMonth(NamedTuple):
    """`FRI#2`, `FRIL`: the second or the last Friday of a month."""

    weekday: int
    number: int | None
    """None: the last one."""


@dataclass(frozen=True, slots=True)
class Days:
    """The rules for days; weekdays are numbers from 0, Sunday, to 6."""

    days: frozenset[int] = _ALL_DAYS
    nearest: frozenset[int] = frozenset()
    """`15W`: the working day (Monday to Friday) of the same month that is nearest to the 15th."""
    last: frozenset[LastDay] = frozenset()
    weekdays: frozenset[int] = _ALL_WEEKDAYS
    of_month: frozenset[WeekdayOfMonth] = frozenset()
    either: bool = False
    """Whether a day needs to match one of the two fields only."""
    every_day: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "every_day", self.any_day and self.any_weekday)

    @property
    def any_day(self) -> bool:
        """Whether the day-of-month field takes every day."""
        return self.days == _ALL_DAYS

    @property
    def any_weekday(self) -> bool:
        """Whether the day-of-week field takes every day."""
        return self.weekdays == _ALL_WEEKDAYS

    @classmethod
    def unix(cls, day: str, weekday: str) -> Self:
        """Read the fields by the rules of Unix: both given mean either, and one that begins with `*` is not given."""
        either = not day.startswith("*") and not weekday.startswith("*")
        return cls(days=values(day, UNIX_DAY), weekdays=values(weekday, UNIX_WEEKDAY), either=either)

    @classmethod
    def quartz(cls, day: str, weekday: str) -> Self:
        """Read the fields by the rules of Quartz: one of them is `?` or `*`."""
        if day == weekday == "?":
            raise ValueError("its day-of-month and day-of-week are both '?'; give one of them, or '*'")
        if day not in ANY and weekday not in ANY:
            raise ValueError(
                f"its day-of-month {day!r} and day-of-week {weekday!r} are both given; one of them must be '?'"
            )
        days, nearest, last = _days(day)
        weekdays, of_month = _weekdays(weekday)
        return cls(days, nearest, last, weekdays, of_month)

    def of(self, year: int, month: int) -> list[int]:
        """Return the matching days of a month, in order."""
        monday_based, length = monthrange(year, month)
        if self.every_day:
            return list(range(1, length + 1))
        sunday_based = (monday_based + 1) % 7
        by_day = self._by_day(sunday_based, length)
        by_weekday = self._by_weekday(sunday_based, length)
        return sorted(by_day | by_weekday if self.either else by_day & by_weekday)

    def _by_day(self, first: int, length: int) -> set[int]:
        found = {day for day in self.days if day <= length}
        found |= {_nearest_working_day(day, first, length) for day in self.nearest if day <= length}
        for rule in self.last:
            day = length - rule.before
            if day >= 1:
                found.add(_nearest_working_day(day, first, length) if rule.nearest else day)
        return found

    def _by_weekday(self, first: int, length: int) -> set[int]:
        found = {day for day in range(1, length + 1) if (first + day - 1) % 7 in self.weekdays}
        for weekday, number in self.of_month:
            days = range(1 + (weekday - first) % 7, length + 1, 7)
            if number is None:
                found.add(days[-1])
            elif number <= len(days):
                found.add(days[number - 1])
        return found


def _nearest_working_day(day: int, first: int, length: int) -> int:
    weekday = (first + day - 1) % 7
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _days(text: str) -> tuple[frozenset[int], frozenset[int], frozenset[LastDay]]:
    days, nearest, last = set[int](), set[int](), set[LastDay]()
    for item in ["*"] if text == "?" else text.split(","):
        if found := _FROM_LAST.fullmatch(item):
            before = int(found["before"] or 0)
            if before > 30:
                raise QUARTZ_DAY.refusal(item, "n of L-n is from 0 to 30")
            last.add(LastDay(before, found["nearest"] is not None))
        elif found := _NEAREST.fullmatch(item):
            nearest.add(QUARTZ_DAY.number(found["day"], item))
        else:
            days.update(span(item, QUARTZ_DAY))
    return frozenset(days), frozenset(nearest), frozenset(last)


def _weekdays(text: str) -> tuple[frozenset[int], frozenset[WeekdayOfMonth]]:
    """Return plain weekdays, and those of a month. Quartz counts from 1, Sunday."""
    weekdays, of_month = set[int](), set[WeekdayOfMonth]()
    for item in ["*"] if text == "?" else text.split(","):
        if item == "L":
            weekdays.add(SATURDAY)
        elif found := _OF_MONTH.fullmatch(item):
            number = None if found["number"] is None else int(found["number"][:3])
            if number is not None and not 1 <= number <= 5:
                raise QUARTZ_WEEKDAY.refusal(item, "k of n#k is from 1 to 5")
            of_month.add(WeekdayOfMonth(QUARTZ_WEEKDAY.number(found["weekday"], item) - 1, number))
        else:
            weekdays.update(value - 1 for value in span(item, QUARTZ_WEEKDAY))
    return frozenset(weekdays), frozenset(of_month)
