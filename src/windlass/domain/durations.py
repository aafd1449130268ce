"""Durations as users write them: seconds or a timedelta."""

from datetime import timedelta
from typing import Final

from windlass.errors import InvalidOptionError

MAX_SECONDS: Final = 100 * 366 * 86_400
"""100 years: more is probably a wrong unit, and would not fit every database's calendar."""


def seconds(value: object, name: str) -> float:
    """Check a duration given as option `name` and return it in seconds.

    Example: `seconds(timedelta(minutes=1), "delay") == 60.0`
    """
    given = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidOptionError(
            f"{name} must be a number of seconds or a timedelta, got {value!r} ({type(value).__name__})"
        )
    if not given >= 0:  # written so that NaN is caught too
        raise InvalidOptionError(f"{name} must not be negative or NaN, got {value!r}; give seconds >= 0 or a timedelta")
    if given > MAX_SECONDS:
        raise InvalidOptionError(f"{name} must be at most 100 years, got {value!r}; the unit is seconds")
    return float(given)
