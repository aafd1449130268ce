"""When a duty of the cluster is due, given its last pass: at an interval, or at times of a cron expression.

Times are the store's, in microseconds: pure arithmetic, so that all nodes agree.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from windlass.domain.clock import MICROSECONDS
from windlass.domain.cron import Cron

DAY = 86_400 * MICROSECONDS


class Rhythm(Protocol):
    """Determines when the next pass is due."""

    def wait(self, now: int, since: int, passed_at: int | None) -> int:
        """Return the microseconds until the next pass is due, 0 or less if it is; `since`.

        When the duty first existed.
        """
        ...


class Every(NamedTuple):
    """A pass every so many seconds, the first one at once."""

    seconds: float

    def wait(self, now: int, since: int, passed_at: int | None) -> int:
        """Return the rest of the interval after the last pass.

        A last pass in the future means that a clock was set back.
        """
        del since
        interval = int(self.seconds * MICROSECONDS)
        return 0 if passed_at is None or passed_at > now else passed_at + interval - now


class AtTimes(NamedTuple):
    """A pass at each time of a cron expression, in UTC; several missed times need only one pass."""

    cron: Cron

    def wait(self, now: int, since: int, passed_at: int | None) -> int:
        """Return the time until the first one after the last pass; a day if there is none any more."""
        last = min(since if passed_at is None else passed_at, now)
        found = self.cron.next_after(last, "UTC")
        return DAY if found is None else found - now


class Always(NamedTuple):
    """Always due."""

    def wait(self, now: int, since: int, passed_at: int | None) -> int:
        """Return 0: always due."""
        del now, since, passed_at
        return 0
