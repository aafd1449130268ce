"""How many claims a node may hold: for its free slots, and slightly ahead at its current pace.

A node claims ahead only what it will start within a few hundredths of a second.
"""

from __future__ import annotations

from windlass.domain.clock import monotonic

CLAIM_AHEAD = 0.05
"""Seconds of work that a node may hold claimed beyond its slots, without payloads."""
READY_SHARE = 0.08
"""Share of that whose bodies are prepared for threads that run others: 4 milliseconds of work."""
LOAD_AHEAD = 0.01
"""Seconds of work whose large payloads it may hold in addition to the running ones."""
WINDOW = 0.2
LEAST = 0.02
"""Seconds after which a new window counts, if it is faster than the previous one.

After a start, or when jobs get faster, claims then grow quickly.
"""


class Pace:
    """Jobs per second over a short window, so that it falls as soon as jobs get slow."""

    __slots__ = ("_count", "_rate", "_since")

    def __init__(self, now: float) -> None:
        self._since = now
        self._count = 0
        self._rate = 0.0

    def add(self) -> None:
        """Count one more job."""
        self._count += 1

    def per_second(self, now: float) -> float:
        """Return the jobs per second over the last full window."""
        elapsed = now - self._since
        if elapsed >= WINDOW:
            self._rate = self._count / elapsed
            self._since = now
            self._count = 0
        elif self._count:
            self._rate = max(self._rate, self._count / max(elapsed, LEAST))
        return self._rate


class Room:
    """How much a node with so many slots may claim, prepare and load."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self.pace = Pace(monotonic())
        self.enough = 0
        """While more than this wait, nothing is claimed: many small claims cost more than they gain."""
        self.most_ready = 0
        """Number of bodies that may be prepared for threads."""

    def to_claim(self, running: int, waiting: int) -> int:
        """Return how many more jobs may be claimed."""
        ahead = self._ahead(CLAIM_AHEAD)
        self.enough = ahead // 2
        self.most_ready = min(self._concurrency, int(ahead * READY_SHARE))
        return 0 if waiting > self.enough else self._concurrency + ahead - running - waiting

    def to_load(self, running: int) -> int:
        """Return the number of waiting claims whose payloads are needed."""
        return max(self._concurrency - running + self._ahead(LOAD_AHEAD), 0)

    def _ahead(self, seconds: float) -> int:
        return int(self.pace.per_second(monotonic()) * seconds)
