"""Dispatch lag: the time between a job's due time and its claim, counted in buckets that nodes can add up.

A bucket holds lags of which the largest is at most a quarter longer than the smallest.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

FINE_BITS: Final = 2
"""Each power of two is divided into 2 to the power of this many buckets."""
WINDOW: Final = 60.0
"""Seconds after which counts become those of the previous window, and older counts are dropped."""
MOST_US: Final = (1 << 50) - 1
"""About 35 years: longer lags count as this long."""

LagCounts = Mapping[int, int]
"""Number of claims by bucket."""
NO_LAGS: Final[LagCounts] = MappingProxyType({})


def bucket_of(lag_us: int) -> int:
    """Return the bucket of a lag in microseconds."""
    lag = min(max(lag_us, 0), MOST_US)
    shift = max(lag.bit_length() - FINE_BITS - 1, 0)
    return (shift << FINE_BITS) + (lag >> shift)


def longest_of(bucket: int) -> int:
    """Return the longest lag of a bucket, in microseconds."""
    shift = max((bucket >> FINE_BITS) - 1, 0)
    return ((bucket - (shift << FINE_BITS) + 1) << shift) - 1


def added(counts: Iterable[LagCounts]) -> dict[int, int]:
    """Return the counts of several nodes as those of one."""
    total: dict[int, int] = {}
    for one in counts:
        for bucket, number in one.items():
            total[bucket] = total.get(bucket, 0) + number
    return total


def quantile(counts: LagCounts, share: float) -> float | None:
    """Return the seconds within which this share of the claims happened; None if there were none."""
    left = share * sum(counts.values())
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return longest_of(bucket) / 1_000_000
    return None


class RecentLags:
    """Counts of the last one to two minutes. From any thread."""

    def __init__(self, now: float) -> None:
        self._lock = threading.Lock()
        self._began = now
        self._counts: dict[int, int] = {}
        self._before: dict[int, int] = {}

    def count(self, lags_us: Iterable[int], now: float, weight: int = 1) -> None:
        """Count the claims of one batch; each lag given stands for `weight` claims."""
        with self._lock:
            self._turn(now)
            counts = self._counts
            for lag in lags_us:
                bucket = bucket_of(lag)
                counts[bucket] = counts.get(bucket, 0) + weight

    def counts(self, now: float) -> dict[int, int]:
        """Return the counts of the current and the previous window."""
        with self._lock:
            self._turn(now)
            return added((self._before, self._counts))

    def _turn(self, now: float) -> None:
        age = now - self._began
        if age < WINDOW:
            return
        self._before = self._counts if age < 2 * WINDOW else {}
        self._counts = {}
        self._began = now
