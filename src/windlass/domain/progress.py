"""What a job reports while it runs: its progress, and the log lines that are kept with it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from numbers import Real

from windlass.errors import InvalidOptionError

_POSITION = re.compile(r"([0-9]{1,18})\.([0-9]{1,9})")
_EXPECTED = "call progress(done) or progress(done, total), e.g. ctx.progress(3, 10)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a job as its latest attempt reported it: `ctx.progress(3, 10, "resizing")`.

    `percent` is None as long as no `total` is known, and never above 100.
    """

    done: float
    total: float | None
    message: str
    at: datetime
    percent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A log line kept with a job.

    `number` counts the lines of one attempt, from 1. `fence` distinguishes attempts that share their number because the
    first one was snoozed, released or lost.
    """

    attempt: int
    number: int
    at: datetime
    level: str
    logger: str
    text: str
    fence: int

    @property
    def position(self) -> str:
        """Its position among the job's lines, as text: `app.log_lines(id, after=position)` continues after it."""
        return f"{self.fence}.{self.number}"


def position_of(after: LogLine | str | None) -> tuple[int, int]:
    """Return where to continue reading, as fence and number of the last line seen; None: before all lines."""
    if after is None:
        return (-1, 0)
    if isinstance(after, LogLine):
        return (after.fence, after.number)
    found = _POSITION.fullmatch(str(after))
    if found is None:
        raise InvalidOptionError(f"after must be a LogLine or its position, got {after!r}; pass the last line you have")
    return (int(found[1]), int(found[2]))


def amount(value: object, name: str) -> float:
    """Check `done` or `total` of a progress and return it as a float."""
    if type(value) is not int and type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
        raise InvalidOptionError(
            f"{name} of a progress must be a number, got {value!r} ({type(value).__name__}); {_EXPECTED}"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:  # written so that NaN is caught too
        raise InvalidOptionError(f"{name} of a progress must be a finite number from 0 on, got {value!r}; {_EXPECTED}")
    return number


def percent_of(done: float, total: float | None) -> float | None:
    """Return the percentage done; 100 if there is nothing to do."""
    if total is None:
        return None
    return min(100.0 * done / total, 100.0) if total else 100.0
