"""How many claims a node may hold: for its free slots, and a little ahead at its present pace.

A node never hoards: ahead it claims only what it will start within a few hundredths of a second.
"""

from __future__ import annotations

from windlass.domain.clock import monotonic

CLAIM_AHEAD = 0.05
"""Seconds of work a node may hold claimed beyond its slots, as light claims."""
READY_SHARE = 0.08
"""Share of that whose bodies stand ready for the threads that run others: 4 milliseconds of work."""
LOAD_AHEAD = 0.01
"""Seconds of work whose large payloads it may hold besides those that run."""
WINDOW = 0.2
LEAST = 0.02
"""Seconds from which a window that has just begun is believed, if it is faster than the one before: after a start, or
when jobs get quicker, claims soon grow."""


class Pace:
    """Jobs a second over a short window, so that it falls as soon as jobs get slow."""

    __slots__ = ("_count", "_rate", "_since")

    def __init__(self, now: float) -> None:
        self._since = now
        self._count = 0
        self._rate = 0.0

    def add(self) -> None:
        """One more job is through."""
        self._count += 1

    def per_second(self, now: float) -> float:
        """Jobs a second over the last full window."""
        elapsed = now - self._since
        if elapsed >= WINDOW:
            self._rate = self._count / elapsed
            self._since = now
            self._count = 0
        elif self._count:
            self._rate = max(self._rate, self._count / max(elapsed, LEAST))
        return self._rate


class Room:
    """How much a node with so many slots may claim, make ready and load."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self.pace = Pace(monotonic())
        self.enough = 0
        """While more than this wait, claims are saved up: many small ones cost more than they bring forward."""
        self.most_ready = 0
        """How many bodies may stand ready for threads."""

    def to_claim(self, running: int, waiting: int) -> int:
        """How many more jobs may be claimed."""
        ahead = self._ahead(CLAIM_AHEAD)
        self.enough = ahead // 2
        self.most_ready = min(self._concurrency, int(ahead * READY_SHARE))
        return 0 if waiting > self.enough else self._concurrency + ahead - running - waiting

    def to_load(self, running: int) -> int:
        """Of how many waiting claims the payloads are wanted."""
        return max(self._concurrency - running + self._ahead(LOAD_AHEAD), 0)

    def _ahead(self, seconds: float) -> int:
        return int(self.pace.per_second(monotonic()) * seconds)
