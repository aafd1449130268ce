"""How many jobs a second a node gets through, lately: decides how far ahead it may claim and load."""

from __future__ import annotations

WINDOW = 0.2
LEAST = 0.02
"""Seconds from which a window that has just begun is believed, if it is faster than the one before: after a start, or
when jobs get quicker, claims soon grow."""


class Pace:
    """A rate over a short window, so that it falls as soon as jobs get slow."""

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
