"""Cron expressions in plain English: "every 15 minutes from 09:00 to 17:59, Monday to Friday"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Final

from windlass.domain.cron_days import Days, LastDay

if TYPE_CHECKING:
    from windlass.domain.cron import Cron

WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS: Final = (
    *("", "January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
MOST_TIMES: Final = 6
"""How many times of day are listed."""
_ORDINALS: Final = ("", "first", "second", "third", "fourth", "fifth")


def phrase(cron: Cron) -> str:
    """Return an expression in words."""
    times, days, months = _times(cron), _days(cron.days), _months(cron)
    if months and " of the month" in days:
        days, months = days.replace(" of the month", f" of {months}"), ""
    if cron.days.every_day and "every" not in times:
        times += " every day"
    text = times + (f" {days}" if days.startswith("on ") else f", {days}" if days else "")
    text += f" in {months}" if months else ""
    if cron.years:
        text += f"{', in' if len(cron.months) == 12 else ' of'} {_ranges(cron.years, str)}"
    return text


def _months(cron: Cron) -> str:
    return "" if len(cron.months) == 12 else _ranges(cron.months, lambda month: MONTHS[month], 1, 12)


def _times(cron: Cron) -> str:
    seconds, minutes, hours = cron.seconds, cron.minutes, cron.hours
    if len(seconds) * len(minutes) * len(hours) <= MOST_TIMES:
        with_seconds = len(cron.expression.split()) > 5
        times = [_time(*time, with_seconds=with_seconds) for time in product(hours, minutes, seconds)]
        return f"at {_listed(times)}"
    if len(seconds) == len(minutes) == 1:
        return _hourly(hours, minutes[0], seconds[0])
    minute = _rate(minutes, 60, "minute")
    within = _within(hours) or (" of every hour" if minute.startswith("at ") else "")
    if len(seconds) == 1:
        at = f" at second {seconds[0]}" if seconds[0] else ""
        return f"{minute}{at}{within}"
    second = _rate(seconds, 60, "second")
    if len(minutes) == 60 and second.startswith("every "):
        return f"{second}{within}"
    return f"{second} of {minute.removeprefix('at ')}{within}"


def _hourly(hours: Sequence[int], minute: int, second: int) -> str:
    """Return a phrase for one time of several hours: "every 2 hours from 00:30 to 22:30"."""
    time = f"{minute:02}:{second:02}" if second else f"{minute:02}"
    step = _step(hours)
    every = "every hour" if step == 1 else f"every {step} hours"
    if len(hours) == 24:
        return f"{every} at minute {minute}{f' and second {second}' if second else ''}" if minute or second else every
    if step:
        return f"{every} from {hours[0]:02}:{time} to {hours[-1]:02}:{time}"
    return f"at {_listed([f'{hour:02}:{time}' for hour in hours])}"


def _within(hours: Sequence[int]) -> str:
    """Return the hours in which something happens more than once."""
    if len(hours) == 24:
        return ""
    runs = _runs(hours, 0, 23)
    if len(runs) == 1:
        return f" from {runs[0][0]:02}:00 to {runs[0][-1]:02}:59"
    return f" of the hours {_ranges(hours, str, 0, 23)}"


def _rate(values: Sequence[int], size: int, unit: str) -> str:
    """Return how often: "every 15 minutes", or at which ones: "at minutes 1, 5 and 30"."""
    if len(values) == 1:
        return f"at {unit} {values[0]}"
    step = _step(values)
    if step and values[0] < step and values[-1] + step >= size and size % step == 0:
        begin = f" from {unit} {values[0]}" if values[0] else ""
        return f"every {unit}" if step == 1 else f"every {step} {unit}s{begin}"
    return f"at {unit}s {_ranges(values, str)}"


def _step(values: Sequence[int]) -> int | None:
    """Return the distance of all neighbours, if it is the same."""
    steps = {after - before for before, after in pairwise(values)}
    return steps.pop() if len(steps) == 1 else None


def _days(days: Days) -> str:
    by_day, by_weekday = _by_day(days), _by_weekday(days)
    if days.either:
        return f"{by_day}, and on {by_weekday.removeprefix('on ')}"
    if by_day and by_weekday:
        return f"{by_day} if it is {by_weekday.removeprefix('on ').replace(' and ', ' or ')}"
    return by_day or by_weekday


def _by_day(days: Days) -> str:
    if days.any_day:
        return ""
    named = [_last_day(rule) for rule in sorted(days.last)]
    named += [f"the working day nearest to day {day}" for day in sorted(days.nearest)]
    if days.days:
        step = _step(sorted(days.days))
        every = step is not None and step > 1 and len(days.days) > MOST_TIMES
        listed = _ranges(sorted(days.days), str, 1, 31)
        first = min(days.days)
        plain = f"every {step} days from day {first}" if every else f"day{'s'[: len(days.days) > 1]} {listed}"
        named.insert(0, plain)
    on = "" if named[0][0].isdecimal() else "on "
    return f"{on}{_listed(named)} of the month"


def _last_day(rule: LastDay) -> str:
    last = "last working day" if rule.nearest and not rule.before else "last day"
    if not rule.before:
        return f"the {last}"
    days = "day" if rule.before == 1 else "days"
    found = f"{rule.before} {days} before the {last}"
    return f"the working day nearest to {found}" if rule.nearest else found


def _by_weekday(days: Days) -> str:
    if days.any_weekday:
        return ""
    named = [
        f"the {'last' if number is None else _ORDINALS[number]} {WEEKDAYS[weekday]}"
        for weekday, number in sorted(days.of_month, key=lambda rule: (rule.number or 6, rule.weekday))
    ]
    plain = _ranges(sorted(days.weekdays), lambda weekday: WEEKDAYS[weekday], 0, 6)
    if not named:
        return plain if " to " in plain else f"on {plain}"
    month = f"{_listed(named)} of the month"
    return f"on {plain} and {month}" if plain else f"on {month}"


def _ranges(values: Sequence[int], name: Callable[[int], str], low: int | None = None, high: int | None = None) -> str:
    """Return values as ranges and a list: "Monday to Friday and Sunday". Between `low` and `high` they go round."""
    texts: list[str] = []
    for run in _runs(values, low, high):
        texts += [f"{name(run[0])} to {name(run[-1])}"] if len(run) > 2 else map(name, run)
    return _listed(texts)


def _runs(values: Sequence[int], low: int | None, high: int | None) -> list[list[int]]:
    """Return values that follow each other as lists."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    if len(runs) > 1 and runs[0][0] == low and runs[-1][-1] == high:
        runs[-1] += runs.pop(0)
    return runs


def _time(hour: int, minute: int, second: int, *, with_seconds: bool) -> str:
    return f"{hour:02}:{minute:02}:{second:02}" if with_seconds else f"{hour:02}:{minute:02}"


def _listed(texts: Sequence[str]) -> str:
    """Return "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
