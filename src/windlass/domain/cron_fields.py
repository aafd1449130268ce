"""The fields of a cron expression: the values of one, from its text.

`values("10-14/2,50", MINUTE) == {10, 12, 14, 50}`; a range may wrap: `values("NOV-FEB", MONTH) == {11, 12, 1, 2}`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MONTH_NAMES: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAY_NAMES: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
ANY: Final = ("*", "?")

_QUARTZ_ONLY: Final = re.compile(r"[?#]|^L|[0-9][LW]$")
_SPAN: Final = re.compile(
    r"(?:\*|(?P<first>[0-9]{1,4}|[A-Z]{3})(?:-(?P<last>[0-9]{1,4}|[A-Z]{3}))?)(?:/(?P<step>[0-9]{1,4}))?"
)


class Field(NamedTuple):
    """What a field takes. Names stand for the numbers from `low` on."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    also: str = ""
    """The forms it takes besides numbers, names, ranges, steps and lists."""
    wraps: bool = True

    @property
    def size(self) -> int:
        """How many different values there are: 0 and 7 are the same day of a week."""
        return 7 if self.names == WEEKDAY_NAMES else self.high - self.low + 1

    @property
    def takes(self) -> str:
        """What it takes, for error messages."""
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        also = f", {self.also}" if self.also else ""
        return f"{self.low}-{self.high}{names}, *, a-b, a/n, */n{also} and lists of these"

    def refusal(self, item: str, why: str = "") -> ValueError:
        """Return the error for a part of the field that cannot be read."""
        if not why and not self.also and _QUARTZ_ONLY.search(item) and self.name.startswith("day"):
            why = "?, L, W and # are for expressions of 6 fields, with the second first"
        return ValueError(f"its {self.name} takes {self.takes}, not {item!r}{f': {why}' if why else ''}")

    def number(self, text: str, item: str) -> int:
        """Return the value of a number or name."""
        if text in self.names:
            return self.low + self.names.index(text)
        if not text.isdecimal() or not self.low <= int(text) <= self.high:
            raise self.refusal(item)
        return int(text)


SECOND: Final = Field("second", 0, 59)
MINUTE: Final = Field("minute", 0, 59)
HOUR: Final = Field("hour", 0, 23)
MONTH: Final = Field("month", 1, 12, MONTH_NAMES)
YEAR: Final = Field("year", 1970, 2099, wraps=False)
UNIX_DAY: Final = Field("day-of-month", 1, 31)
UNIX_WEEKDAY: Final = Field("day-of-week", 0, 7, WEEKDAY_NAMES)
QUARTZ_DAY: Final = Field("day-of-month", 1, 31, also="?, L, L-n, nW, LW")
QUARTZ_WEEKDAY: Final = Field("day-of-week", 1, 7, WEEKDAY_NAMES, also="?, L, nL, n#k")


def values(text: str, field: Field) -> frozenset[int]:
    """Return the values of a field; `ValueError` says what it takes."""
    return frozenset(value for item in text.split(",") for value in span(item, field))


def span(item: str, field: Field) -> list[int]:
    """Return the values of one element of a list: a value, a range, or either with a step."""
    found = _SPAN.fullmatch(item)
    if found is None:
        raise field.refusal(item)
    step = int(found["step"] or 1)
    if found["step"] is not None and not 1 <= step < field.size:
        longer = "; every(…) has longer intervals" if step else ""
        raise field.refusal(item, f"steps are from 1 to {field.size - 1}{longer}")
    first = field.low if found["first"] is None else field.number(found["first"], item)
    open_ended = found["first"] is None or found["step"] is not None
    last = max(first, field.low + field.size - 1) if open_ended else first
    if found["last"] is not None:
        last = field.number(found["last"], item)
    if last < first:
        if not field.wraps:
            raise field.refusal(item, "a range of years ends after it begins")
        last += field.size
    return [field.low + (value - field.low) % field.size for value in range(first, last + 1, step)]
