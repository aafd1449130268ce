"""How often jobs have arrived lately: under a steady stream the poller queries the store by itself.

Notifications are sent at most every 20 ms by each process, because one with every commit would slow concurrent commits
down. Where jobs arrive faster than that, the next one is expected as soon as the last ones have followed each other. So
a node queries about as often as it finds a job, whatever the rate is and however many nodes share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.job import Claim

LONGEST_GAP: Final = 0.02
"""Seconds between two jobs from which on notifications are as fast."""
GIVEN_UP_AFTER: Final = 0.03
"""Seconds without a job after which the stream counts as ended: a notification announces any later job."""
WEIGHT: Final = 0.2
"""Of the latest gap in the average."""


class Arrivals(NamedTuple):
    """The stream of jobs that claims have returned."""

    gap: float = float("inf")
    """Average seconds from one job to the next."""
    last: float = float("-inf")
    """When a claim last returned a job."""
    levels: frozenset[tuple[str, int]] = frozenset()
    """Levels of queues of the last jobs."""

    def after_claim(self, jobs: Sequence[Claim], now: float) -> Arrivals:
        """Record the jobs of a claim that returned all that was due; jobs in lanes are not counted: looks find them."""
        if not jobs:
            return self
        latest = (now - self.last) / len(jobs)
        gap = latest if self.gap > LONGEST_GAP else self.gap + WEIGHT * (latest - self.gap)
        levels = frozenset((claim.queue, claim.priority) for claim in jobs if claim.lane is None)
        return Arrivals(gap, now, levels)

    def steady(self, now: float) -> bool:
        """Return whether another job is expected before a notification could arrive."""
        return self.gap < LONGEST_GAP and now - self.last < GIVEN_UP_AFTER
