"""What a claim asks for, and the order it takes: the heads of all priority levels, merged."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Head(NamedTuple):
    """Where a claim looks: one priority level of one queue, or one of its lanes, and when it is worth it."""

    queue: str
    level: int
    due_at: int
    lane: str | None = None
    rank: tuple[int, int] = (0, 0)
    """Of a lane: how its first job ranks among those of other lanes, lowest first."""


class WaitingLane(NamedTuple):
    """A lane that has jobs waiting: when the first one of each priority level is due."""

    queue: str
    lane: str
    dues: Mapping[int, int]

    @property
    def place(self) -> tuple[str, str]:
        """Where it stands among all lanes."""
        return self.queue, self.lane

    @property
    def first_due(self) -> int:
        """When any of its jobs is due."""
        return min(self.dues.values())

    def rank(self, now: int, boost_us: int) -> tuple[int, int]:
        """How the first of its jobs ranks, by effective priority and due time, lowest first."""
        due = {level: due for level, due in self.dues.items() if due <= now}
        return min(
            ((-(level + ((now - at) // boost_us if boost_us else 0)), at) for level, at in due.items()),
            default=(0, now),
        )


class Trust(NamedTuple):
    """What a node has seen of gates lately: they had room for much more than it asks for.

    A claim then need not wait for their locks before it chooses. That it was right is checked before anything counts.
    """

    asked: frozenset[str]
    """Names of gates that were asked for."""
    counted: frozenset[str]
    """Those of them that count who passes."""


class ClaimRequest(NamedTuple):
    """What a node asks for: up to `wanted` jobs from these heads, `chunk` rows read of each."""

    node: str
    heads: Sequence[Head]
    wanted: int
    chunk: int
    boost_us: int
    limited: frozenset[str] = frozenset()
    """Queues with a limit of their own, as far as is known: no others are claimed from without asking for one."""
    turn: int = 0
    """Which claim of its node this is: of an odd number wanted, lanes get the larger half every other time."""
    trust: Trust | None = None


class Allotment(NamedTuple):
    """How many jobs a queue or a lane may give at most (None: any number), and what each of them then holds."""

    places: int | None
    holds: str | None


ANY_NUMBER = Allotment(None, None)


def at_least(number: int) -> int:
    """The power of two that is not below: statements are made per chunk, and so stay few."""
    return 1 << max(number - 1, 0).bit_length()


Ranked = tuple[int, int, Any, str]
"""Effective priority, highest first; due time; id; queue."""


def merge_heads(
    heads: Sequence[Head],
    chunks: Sequence[Sequence[tuple[Any, int, int]]],
    request: ClaimRequest,
    now: int,
    places: Mapping[str, int | None],
) -> list[tuple[Any, str]]:
    """The first `wanted` ids, with their queues, over all chunks, cut where a chunk that may go on ends.

    Beyond it the order is not known. A queue gives no more than it has places; what it holds back is passed over.
    """

    def rank(row: tuple[Any, int, int], queue: str) -> Ranked:
        job, due, priority = row
        # Rows may have come due since `now` was asked for: they have waited for nothing yet.
        boost = max(now - due, 0) // request.boost_us if request.boost_us else 0
        return (-(priority + boost), due, job, queue)

    pairs = zip(heads, chunks, strict=True)
    ranked = [[rank(row, head.queue) for row in chunk] for head, chunk in pairs if chunk]
    ends = [chunk[-1] for chunk in ranked if len(chunk) == request.chunk]
    left = {queue: number for queue, number in places.items() if number is not None}
    limit = _first_end(ends, left)
    picked: list[tuple[Any, str]] = []
    for key in heapq.merge(*ranked):
        queue = key[3]
        if left.get(queue, 1) <= 0:
            continue
        if len(picked) == request.wanted or (limit is not None and key > limit):
            break
        picked.append((key[2], queue))
        if queue in left:
            left[queue] -= 1
            limit = _first_end(ends, left)
    return picked


def _first_end(ends: Sequence[Ranked], left: Mapping[str, int]) -> Ranked | None:
    """Where a chunk that may go on ends first; a queue that gives nothing more does not go on."""
    return min((end for end in ends if left.get(end[3], 1) > 0), default=None)
