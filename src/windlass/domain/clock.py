"""Time: the only module that asks the operating system for it.

The store keeps time as whole microseconds since 1970-01-01 UTC; users get aware datetimes.
"""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Final

from windlass.errors import InvalidOptionError

MICROSECONDS: Final = 1_000_000
"""Microseconds in a second."""
END_OF_TIME: Final = 2**62
"""Later than any stored time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_VIRTUAL_START = datetime(2030, 1, 1, tzinfo=UTC)

monotonic = time.monotonic
"""Seconds that never decrease, for measuring and timers; comparable within one process only."""

wall_nanos = time.time_ns
"""Nanoseconds since the epoch by the system's clock, which may jump in either direction."""


def micros(moment: datetime) -> int:
    """Return an aware datetime as microseconds since the epoch, without rounding.

    Example: `micros(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 1_000_000`
    """
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidOptionError(
            f"expected a datetime with a time zone, got the naive {moment!r}; add one, e.g. tzinfo=datetime.UTC"
        )
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(value: int) -> datetime:
    """Return microseconds since the epoch as an aware datetime in UTC; the inverse of `micros`.

    A time outside the calendar becomes its first or last moment: a damaged row must not hide a whole page.
    """
    try:
        return _EPOCH + timedelta(microseconds=value)
    except OverflowError:
        return _LAST if value > 0 else _FIRST


class SystemClock:
    """The clock of this machine."""

    __slots__ = ()

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        return datetime.now(UTC)

    def micros(self) -> int:
        """Return the current time as microseconds since the epoch."""
        return time.time_ns() // 1000


class VirtualClock:
    """A clock that moves only by `advance`; it may be shared between threads.

    ```python
    clock = VirtualClock()
    clock.advance(60)
    ```
    """

    __slots__ = ("_lock", "_micros", "started")

    def __init__(self, start: datetime = _VIRTUAL_START) -> None:
        self._lock = threading.Lock()
        self._micros = self.started = micros(start)

    def now(self) -> datetime:
        """Return the time this clock is set to, aware, in UTC."""
        return from_micros(self._micros)

    def micros(self) -> int:
        """Return the time this clock is set to as microseconds since the epoch."""
        return self._micros

    def advance(self, seconds: float | timedelta) -> None:
        """Move forward by `seconds`; use `set` to go back."""
        step = seconds // _MICROSECOND if isinstance(seconds, timedelta) else round(seconds * 1_000_000)
        if step < 0:
            raise InvalidOptionError(f"advance: expected seconds >= 0, got {seconds!r}; use set() to move a clock back")
        with self._lock:
            self._micros += step

    def set(self, moment: datetime) -> None:
        """Set the clock to `moment`, which may be in its past."""
        target = micros(moment)
        with self._lock:
            self._micros = target
