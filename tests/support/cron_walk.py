"""Cron by brute force: it walks through time and asks of each second whether it matches.

Written apart from `windlass.domain.cron`, and by another method, as the other opinion of its tests. It reads only
expressions that are right.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
DAY = timedelta(days=1)

Matches = Callable[[int], bool]


def one_of(text: str, low: int, high: int, names: list[str] | None = None, end: int | None = None) -> set[int]:
    """The values of a field, found by going round it step by step."""
    found = set()
    for item in text.split(","):
        body, _, step = item.partition("/")
        first, _, last = body.partition("-")
        if first == "*":
            at, stop = low, high if end is None else end
        else:
            at = number(first, low, names)
            stop = number(last, low, names) if last else ((high if end is None else end) if step else at)
        skip = 0
        while True:
            if skip == 0:
                found.add(at)
                skip = int(step or 1)
            if at == stop:
                break
            at = following(at, stop, low, high, end)
            skip -= 1
    return found


def following(at: int, stop: int, low: int, high: int, end: int | None) -> int:
    """The next value on the way round; 7 is Sunday again, and is passed only if it is where a range ends."""
    if end is None or at < end:
        return at + 1 if at < high else low
    return (7 if stop == 7 else 0) if at == end else 1


def number(text: str, low: int, names: list[str] | None) -> int:
    return names.index(text) + low if names and text in names else int(text)


def sunday_based(day: date) -> int:
    return day.isoweekday() % 7


def working_days(day: date) -> list[date]:
    """Those of a day's month."""
    first = day.replace(day=1)
    month = [first + DAY * number for number in range(31)]
    return [each for each in month if each.month == day.month and each.isoweekday() <= 5]


def nearest(day: date) -> date:
    return min(working_days(day), key=lambda each: abs(each - day))


def last_day(day: date) -> date:
    while (day + DAY).month == day.month:
        day += DAY
    return day


def day_matches(item: str, day: date) -> bool:
    """Whether a day matches one item of a day-of-month field."""
    if item.startswith("L"):
        before, _, _ = item[1:].removeprefix("-").partition("W")
        target = last_day(day) - DAY * int(before or 0)
        if target.month != day.month:
            return False
        return day == (nearest(target) if item.endswith("W") else target)
    if item.endswith("W"):
        return int(item[:-1]) <= last_day(day).day and day == nearest(day.replace(day=int(item[:-1])))
    return item == "?" or day.day in one_of(item, 1, 31)


def weekday_matches(item: str, day: date) -> bool:
    """Whether a day matches one item of a Quartz day-of-week field."""
    if item in ("?", "*"):
        return True
    if item == "L":
        return sunday_based(day) == 6
    if "#" in item:
        name, _, count = item.partition("#")
        return sunday_based(day) == number(name, 1, WEEKDAYS) - 1 and (day.day + 6) // 7 == int(count)
    if item.endswith("L"):
        return sunday_based(day) == number(item[:-1], 1, WEEKDAYS) - 1 and (day + DAY * 7).month != day.month
    return sunday_based(day) + 1 in one_of(item, 1, 7, WEEKDAYS)


@dataclass
class Walk:
    """An expression, read for walking."""

    expression: str

    def __post_init__(self) -> None:
        fields = self.expression.upper().split()
        self.unix = len(fields) == 5
        second, minute, hour, self.day, month, self.weekday = (["0", *fields] if self.unix else fields)[:6]
        self.seconds, self.minutes = one_of(second, 0, 59), one_of(minute, 0, 59)
        self.hours, self.months = one_of(hour, 0, 23), one_of(month, 1, 12, MONTHS)
        self.years = one_of(fields[6], 1970, 2099) if len(fields) == 7 else None
        self.fixed = minute[0] != "*" and hour[0] != "*"
        self.known_days: dict[date, bool] = {}

    def on(self, day: date) -> bool:
        if day not in self.known_days:
            self.known_days[day] = (
                day.month in self.months and (self.years is None or day.year in self.years) and self._on(day)
            )
        return self.known_days[day]

    def _on(self, day: date) -> bool:
        by_day = any(day_matches(item, day) for item in self.day.split(","))
        if not self.unix:
            return by_day and any(weekday_matches(item, day) for item in self.weekday.split(","))
        days = {0 if value == 7 else value for value in one_of(self.weekday, 0, 7, WEEKDAYS, end=6)}
        by_weekday = sunday_based(day) in days
        either = self.day[0] != "*" and self.weekday[0] != "*"
        return (by_day or by_weekday) if either else (by_day and by_weekday)

    def matches(self, shown: datetime) -> bool:
        return (
            shown.minute in self.minutes
            and shown.hour in self.hours
            and shown.second in self.seconds
            and self.on(shown.date())
        )

    def ticks(self, zone: ZoneInfo, first: int, last: int) -> Iterator[int]:
        """All ticks in [first, last]; of expressions that fire at second 0 only whole minutes are looked at."""
        pace = 60 if self.seconds == {0} else 1
        at = -(-first // pace) * pace
        before = shown_at(at - pace, zone)
        while at <= last:
            shown = shown_at(at, zone)
            forward = shown.replace(tzinfo=None) - before.replace(tzinfo=None) - timedelta(seconds=pace)
            if self.fires(shown, forward, pace):
                yield at
            leap = self.leap(at, shown, zone, pace)
            before, at = (shown, at + pace) if leap == 0 else (shown_at(at + leap - pace, zone), at + leap)

    def fires(self, shown: datetime, forward: timedelta, pace: int) -> bool:
        if not self.fixed:
            return self.matches(shown)
        missing = forward // timedelta(seconds=pace)  # in front of this one, on a clock that was set forward
        if any(self.matches(shown - timedelta(seconds=pace * back)) for back in range(1, missing + 1)):
            return True
        return shown.fold == 0 and self.matches(shown)

    def leap(self, at: int, shown: datetime, zone: ZoneInfo, pace: int) -> int:
        """How far nothing can match: the rest of an hour of a day that does not, if its clock is not changed."""
        rest = 3600 - (shown.minute * 60 + shown.second)
        if self.on(shown.date()) and shown.hour in self.hours:
            rest = 60 - shown.second if pace == 1 and shown.minute not in self.minutes else 0
        later = shown_at(at + rest, zone)
        return rest if rest > pace and later.utcoffset() == shown.utcoffset() else 0


def shown_at(instant: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(instant, UTC).astimezone(zone)


def clock_changes(zone: ZoneInfo, years: range) -> list[int]:
    """The instants at which the clock of a zone is changed; found day by day, then minute by minute."""
    at = int(datetime(years[0], 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(years[-1] + 1, 1, 1, tzinfo=UTC).timestamp())
    found = []
    while at < end:
        if shown_at(at, zone).utcoffset() != shown_at(at + 86_400, zone).utcoffset():
            minute = at
            while shown_at(minute, zone).utcoffset() == shown_at(at, zone).utcoffset():
                minute += 60
            found.append(minute)
        at += 86_400
    return found
