"""Time zones: names of the IANA database, and the clock on the wall of a zone.

An *instant* is a count of seconds since 1970-01-01 UTC. A *wall time* is what the clock of a zone shows, counted in the
same way, as if the zone were UTC. When a clock is set forward, the wall times of the *gap* do not exist; when it is set
back, those of the *overlap* occur twice.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from windlass.domain.suggestions import did_you_mean
from windlass.errors import InvalidOptionError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_NOT_ZONES: Final = ("localtime", "posixrules", "Factory", "posix/", "right/")
"""Files beside the zones of many systems: the machine's own zone, and zones that count leap seconds."""


class WallClock:
    """The clock of a zone.

    ```python
    WallClock(ZoneInfo("Europe/Berlin")).wall(0) == 3600  # 01:00 in Berlin
    ```
    """

    __slots__ = ("zone",)

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone

    def offset(self, instant: int) -> int:
        """Return how many seconds the clock is ahead of UTC at an instant."""
        return _seconds((_EPOCH + timedelta(seconds=instant)).astimezone(self.zone))

    def wall(self, instant: int) -> int:
        """Return what the clock shows at an instant."""
        return instant + self.offset(instant)

    def occurrences(self, wall: int) -> tuple[int, ...]:
        """Return the instants at which the clock shows a time: none in a gap, two in an overlap, else one."""
        shown = (_EPOCH + timedelta(seconds=wall)).replace(tzinfo=self.zone)
        first, second = wall - _seconds(shown), wall - _seconds(shown.replace(fold=1))
        if first == second:
            return (first,)
        return (first, second) if first < second else ()

    def gap_end(self, wall: int) -> int:
        """Return the instant at which the gap of a wall time ends: that of the clock change."""
        shown = (_EPOCH + timedelta(seconds=wall)).replace(tzinfo=self.zone)
        return self.change_between(wall - _seconds(shown.replace(fold=1)), wall - _seconds(shown))

    def change_between(self, before: int, after: int) -> int:
        """Return the first instant with the offset of `after`; there is one clock change between the two."""
        changed = self.offset(after)
        while after - before > 1:
            middle = (before + after) // 2
            if self.offset(middle) == changed:
                after = middle
            else:
                before = middle
        return after


def wall_clock(name: str) -> WallClock:
    """Return the clock of a zone by its name, e.g. "Europe/Berlin"; an unknown one is refused with the nearest name."""
    try:
        return _known_clock(name)
    except (ZoneInfoNotFoundError, TypeError, ValueError, OSError):  # not there, no text, no legal name, a folder
        raise InvalidOptionError(
            f"expected a time zone by its IANA name, e.g. 'UTC' or 'Europe/Berlin', got {name!r}"
            f"{did_you_mean(name, filter(_is_zone, available_timezones()))}"
        ) from None


@lru_cache(maxsize=1024)
def _known_clock(name: str) -> WallClock:
    given: object = name
    if not isinstance(given, str) or not _is_zone(given):
        raise ValueError(name)
    return WallClock(ZoneInfo(name))


def _is_zone(name: str) -> bool:
    return bool(name) and not name.startswith(_NOT_ZONES)


def _seconds(moment: datetime) -> int:
    offset = moment.utcoffset()
    assert offset is not None, "it has a zone"
    return offset // _SECOND
