"""Detection of a blocked event loop from pings that it answers late."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

LEAST_LOOKS = 2
"""Number of checks without an answer that make a block: when the whole machine is suspended, so is the watchdog."""
LONG_BLOCK = 10
"""Multiple of the threshold after which a block is reported although it has not ended."""
QUIET_FOR = 60.0
"""Seconds in which the same culprit is reported only once."""


class Block(NamedTuple, Generic[T]):
    """A period in which a loop did not run, and what ran on it."""

    seconds: float
    culprit: T | None
    over: bool


class LoopBlocks(Generic[T]):
    """Takes a watchdog's observations, with a clock passed in, and returns what to report."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._asked_at: float | None = None
        self._culprit: T | None = None
        self._looks = 0
        self.noticed = False
        """Whether the unanswered ping has waited too long."""
        self._reported_long = False
        self._quiet_until: dict[T | None, float] = {}

    @property
    def culprit(self) -> T | None:
        """The first one that was seen for too long while this ping waited; None: none was."""
        return self._culprit

    @property
    def waits(self) -> bool:
        """Whether a ping has no answer yet."""
        return self._asked_at is not None

    def asked(self, now: float) -> None:
        """Record that a ping was sent."""
        self._asked_at, self._culprit, self._reported_long = now, None, False
        self._looks, self.noticed = 0, False

    def still_waiting(self, now: float, culprit: T | None) -> Block[T] | None:
        """Record that there is no answer yet while `culprit` runs; return a block to report.

        The first one that is seen for too long counts as the culprit.
        """
        self._looks += 1
        if self._asked_at is None or now - self._asked_at < self._threshold or self._looks < LEAST_LOOKS:
            return None
        self._culprit = self._culprit or culprit
        self.noticed = True
        if self._reported_long or now - self._asked_at < LONG_BLOCK * self._threshold:
            return None
        self._reported_long = True
        return self._report(now, over=False)

    def answered(self, now: float) -> Block[T] | None:
        """Record that the loop runs; return the block that ended, if there was one."""
        if self._asked_at is None:
            return None
        block = self._report(now, over=True) if self.noticed else None
        self._asked_at = None
        return block

    def _report(self, now: float, *, over: bool) -> Block[T] | None:
        assert self._asked_at is not None
        if now < self._quiet_until.get(self._culprit, now):
            return None
        if over:
            self._quiet_until = {key: until for key, until in self._quiet_until.items() if until > now}
            self._quiet_until[self._culprit] = now + QUIET_FOR
        return Block(now - self._asked_at, self._culprit, over)
