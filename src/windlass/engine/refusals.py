"""Jobs that were canceled, or are said to be, before their claim came in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from windlass.domain.clock import monotonic
from windlass.engine.attempt import Attempt
from windlass.runtime.service import Bell

REMEMBERED = 30.0
"""Seconds for which the answer to a claim may be on its way, while its job is canceled."""
MOST_DOUBTED = 10_000
"""Ids of notifications that are remembered: anybody can send any number. The others cost latency only."""


class Refusals:
    """Remembers ids for as long as a claim of theirs may still arrive."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._doubted: dict[str, float] = {}
        self._came_in: set[str] = set()
        self.bell = Bell()
        """Wakes what asks the store about jobs that have come in and may have been canceled."""

    def add(self, ids: Iterable[str]) -> None:
        """These were canceled and are not here: if a claim that is on its way brings them, they do not begin."""
        self._until = _remembered(self._until, ids)

    def doubt(self, ids: Iterable[str]) -> None:
        """A notification names these as canceled: if a claim that is on its way brings them, the store is asked."""
        if len(self._doubted) < MOST_DOUBTED:
            self._doubted |= dict.fromkeys(ids, monotonic() + REMEMBERED)

    def take_doubted(self) -> set[str]:
        """Jobs that have come in since and may have been canceled: the store knows."""
        came_in, self._came_in = self._came_in, set()
        return came_in

    def wanted(self, attempts: Sequence[Attempt], refused: Callable[[Attempt], None]) -> Sequence[Attempt]:
        """Those that may begin; the others are told of."""
        if self._doubted:
            self._doubted = _remembered(self._doubted)
            doubted = [attempt.claim.job_id for attempt in attempts if attempt.claim.job_id in self._doubted]
            if doubted:
                self._came_in.update(doubted)
                self.bell.ring()
        if not self._until:
            return attempts
        for attempt in attempts:
            if attempt.claim.job_id in self._until:
                refused(attempt)
        return [attempt for attempt in attempts if attempt.claim.job_id not in self._until]


def _remembered(known: dict[str, float], new: Iterable[str] = ()) -> dict[str, float]:
    now = monotonic()
    return {job: until for job, until in known.items() if until > now} | dict.fromkeys(new, now + REMEMBERED)
