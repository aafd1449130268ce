"""When a duty of the cluster is due, given when it last passed: every so often, or at times of day.

Times are the store's, in microseconds: pure arithmetic, so that all nodes keep one rhythm.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from windlass.domain.clock import from_micros, micros
from windlass.domain.cron import Cron

MICROSECONDS = 1_000_000


class Rhythm(Protocol):
    """Says how long to wait for the next pass."""

    def wait(self, now: int, since: int, passed_at: int | None) -> int:
        """Microseconds until the next pass is due, 0 or less if it is; `since`: when the duty was first heard of."""
        ...


class Every(NamedTuple):
    """A pass every so many seconds, the first one at once."""

    seconds: float

    def wait(self, now: int, since: int, passed_at: int | None) -> int:
        """Until so long after the last pass. A last pass in the future is one by a clock that was set back."""
        del since
        interval = int(self.seconds * MICROSECONDS)
        return 0 if passed_at is None or passed_at > now else passed_at + interval - now


class AtTimes(NamedTuple):
    """A pass at each time of a cron expression; several that were missed are made up for by one."""

    cron: Cron

    def wait(self, now: int, since: int, passed_at: int | None) -> int:
        """Until the first time behind the last pass."""
        last = min(since if passed_at is None else passed_at, now)
        return micros(self.cron.after(from_micros(last))) - now


class Always(NamedTuple):
    """Due whenever somebody asks."""

    def wait(self, now: int, since: int, passed_at: int | None) -> int:
        """Never."""
        del now, since, passed_at
        return 0
