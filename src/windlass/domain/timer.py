"""One timer for many deadlines: arming and disarming are a few dictionary operations."""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from math import ceil
from typing import Generic, TypeVar

from windlass.errors import InvalidOptionError

_Token = TypeVar("_Token", bound=Hashable)

# Heap entries without a bucket are removed once they outnumber the others by this number.
_SLACK = 64


class Deadlines(Generic[_Token]):
    """Deadlines gathered in buckets of `granularity` seconds; each fires at the end of its bucket, so never early.

    Most deadlines of jobs are disarmed long before they fire; nothing is kept for those.

    ```python
    deadlines = Deadlines[str]()
    deadlines.arm("job", at=10.0)
    deadlines.expired(now=10.1)  # ["job"]
    ```
    """

    __slots__ = ("_bucket_of", "_buckets", "_granularity", "_heap", "_per_second")

    def __init__(self, granularity: float = 0.05) -> None:
        if not granularity > 0:
            raise InvalidOptionError(f"granularity must be more than 0 seconds, got {granularity!r}")
        self._granularity = granularity
        self._per_second = 1 / granularity
        self._bucket_of: dict[_Token, int] = {}
        self._buckets: dict[int, set[_Token]] = {}
        self._heap: list[int] = []

    def arm(self, token: _Token, at: float) -> None:
        """Set the deadline of `token`, replacing an earlier one."""
        if token in self._bucket_of:
            self.disarm(token)
        bucket = ceil(at * self._per_second)
        if at > bucket * self._granularity:  # the product was rounded down
            bucket += 1
        self._bucket_of[token] = bucket
        tokens = self._buckets.get(bucket)
        if tokens is None:
            self._buckets[bucket] = {token}
            heappush(self._heap, bucket)
        else:
            tokens.add(token)

    def disarm(self, token: _Token) -> bool:
        """Remove the deadline of `token`; return False if it has none."""
        bucket = self._bucket_of.pop(token, None)
        if bucket is None:
            return False
        tokens = self._buckets[bucket]
        tokens.discard(token)
        if not tokens:
            del self._buckets[bucket]
            if len(self._heap) > 2 * len(self._buckets) + _SLACK:
                self._heap = list(self._buckets)
                heapify(self._heap)
        return True

    def expired(self, now: float) -> list[_Token]:
        """Remove and return the tokens whose deadline has passed, earliest first to within the granularity."""
        fired: list[_Token] = []
        while (bucket := self._first()) is not None and self._end(bucket) <= now:
            heappop(self._heap)
            tokens = self._buckets.pop(bucket)
            for token in tokens:
                del self._bucket_of[token]
            fired.extend(tokens)
        return fired

    def next_at(self) -> float | None:
        """Return the earliest time at which `expired` returns something; None while nothing is armed."""
        bucket = self._first()
        return None if bucket is None else self._end(bucket)

    def __len__(self) -> int:
        return len(self._bucket_of)

    def __contains__(self, token: object) -> bool:
        return token in self._bucket_of

    def _first(self) -> int | None:
        while self._heap and self._heap[0] not in self._buckets:
            heappop(self._heap)
        return self._heap[0] if self._heap else None

    def _end(self, bucket: int) -> float:
        return bucket * self._granularity
