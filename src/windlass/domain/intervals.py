"""Intervals of schedules: ticks at an anchor and every so many seconds from there, in real time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Self

from windlass.domain.clock import MICROSECONDS
from windlass.domain.durations import MAX_SECONDS
from windlass.errors import InvalidOptionError

UNITS: Final = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}

_WRITTEN: Final = re.compile(r"every\(\s*(.*?)\s*\)", re.DOTALL)
_PART: Final = re.compile(r"(?P<unit>[a-z]+)\s*=\s*(?P<count>[0-9]{1,10})")


@dataclass(frozen=True, slots=True)
class Every:
    """An interval in whole seconds; made by `every`."""

    seconds: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` returns: `every(hours=1, minutes=30)`."""
        given: object = text
        found = _WRITTEN.fullmatch(given.strip()) if isinstance(given, str) else None
        parts = [_PART.fullmatch(part.strip()) for part in found[1].split(",")] if found else [None]
        counts = {part["unit"]: int(part["count"]) for part in parts if part is not None}
        if len(counts) < len(parts) or not counts.keys() <= UNITS.keys():
            raise InvalidOptionError(
                f"expected an interval like 'every(hours=1, minutes=30)' of {', '.join(UNITS)}, got {text!r}"
            )
        return cls(every(**counts).seconds)

    @property
    def interval_us(self) -> int:
        """The interval in microseconds."""
        return self.seconds * MICROSECONDS

    def next_after(self, instant_us: int, anchor_us: int) -> int:
        """Return the first tick after an instant. The anchor is the first of all."""
        if instant_us < anchor_us:
            return anchor_us
        return instant_us + self.interval_us - (instant_us - anchor_us) % self.interval_us

    def __str__(self) -> str:
        parts = ", ".join(f"{unit}={count}" for unit, count in self._parts())
        return f"every({parts})"

    def explain(self) -> str:
        """Return the interval in plain English: "every hour and 30 minutes"."""
        parts = self._parts()
        texts = [f"{count} {unit if count > 1 else unit[:-1]}" for unit, count in parts]
        if parts[0][1] == 1:
            texts[0] = texts[0].removeprefix("1 ")
        return f"every {' and '.join(texts)}"

    def _parts(self) -> list[tuple[str, int]]:
        """Return units and counts. Days are not converted to weeks: a month is not written as 4 weeks and 2 days."""
        parts, rest = [], self.seconds
        if rest % UNITS["weeks"] == 0:
            return [("weeks", rest // UNITS["weeks"])]
        for unit, size in list(UNITS.items())[1:]:
            count, rest = divmod(rest, size)
            if count:
                parts.append((unit, count))
        return parts


def every(*, weeks: int = 0, days: int = 0, hours: int = 0, minutes: int = 0, seconds: int = 0) -> Every:
    """Return an interval for a schedule, of at least a second.

    It is real time: a day is 24 hours, also when clocks change. Ticks are counted from the schedule's start, else from
    its creation.

    ```python
    str(every(minutes=90)) == "every(hours=1, minutes=30)"
    ```
    """
    counts: dict[str, Any] = {"weeks": weeks, "days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
    for unit, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InvalidOptionError(f"every({unit}=…) takes a whole number of 0 or more, got {count!r}")
    total = sum(count * UNITS[unit] for unit, count in counts.items())
    if not 1 <= total <= MAX_SECONDS:
        given = ", ".join(f"{unit}={count}" for unit, count in counts.items() if count)
        raise InvalidOptionError(
            f"every(…) takes an interval from 1 second to 100 years, got every({given}); give at least one of "
            f"{', '.join(UNITS)}"
        )
    return Every(total)
