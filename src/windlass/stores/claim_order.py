"""What a claim asks for, and the order it takes: the heads of all priority levels, of queues and lanes, merged."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from windlass.domain.lanes import QUEUE

Place = tuple[str, str | None]
"""Where jobs wait that pass the same gates: a queue, or one of its lanes."""


class Head(NamedTuple):
    """Where a claim looks: one priority level of a queue or of one of its lanes, and when it is worth it."""

    queue: str
    level: int
    due_at: int
    lane: str | None = None

    @property
    def place(self) -> Place:
        """The queue, and the lane if it is one."""
        return self.queue, self.lane


class WaitingLane(NamedTuple):
    """A lane that has jobs waiting: when the first one of each priority level is due."""

    queue: str
    lane: str
    dues: Mapping[int, int]

    @property
    def place(self) -> tuple[str, str]:
        """Where it stands among all lanes."""
        return self.queue, self.lane


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
    """Which claim of its node this is: what was given back to gates is counted every so often."""
    trust: Trust | None = None


class Allotment(NamedTuple):
    """What the gates of a queue or a lane allow during one claim."""

    gate: str | None
    """The gate that may run short; all that lead through it share its places. A claim is made so small that there is
    at most one (`domain.gates.most_at_once`)."""
    places: int | None
    """How many that gate lets through."""
    holds: str | None
    """What each job holds once it has passed."""

    @property
    def counts_queue(self) -> bool:
        """Whether the queue's own limit is counted."""
        return self.holds is not None and self.holds.startswith(HOLDS_QUEUE)


HOLDS_QUEUE = '["' + QUEUE
ANY_NUMBER = Allotment(None, None, None)


def is_time(due: object) -> bool:
    """Whether a due time is one: SQLite keeps whatever was put there."""
    return isinstance(due, int | float)


def at_least(number: int) -> int:
    """The power of two that is not below: statements are made per chunk, and so stay few."""
    return 1 << max(number - 1, 0).bit_length()


Ranked = tuple[int, int, Any, int]
"""Effective priority, highest first; due time; id; which head."""


def merge_heads(
    heads: Sequence[Head],
    chunks: Sequence[Sequence[tuple[Any, int, int]]],
    request: ClaimRequest,
    now: int,
    allotted: Mapping[Place, Allotment],
) -> list[tuple[Any, Head]]:
    """The first `wanted` ids, with their heads, over all chunks, cut where a chunk that may go on ends.

    Beyond it the order is not known. What a gate without a free place holds back is passed over.
    """

    def rank(row: tuple[Any, int, int], head: int) -> Ranked:
        job, due, priority = row
        # Rows may have come due since `now` was asked for: they have waited for nothing yet.
        boost = max(now - due, 0) // request.boost_us if request.boost_us else 0
        return (-(priority + boost), due, job, head)

    ranked = [[rank(row, nth) for row in chunk] for nth, chunk in enumerate(chunks) if chunk]
    ends = [chunk[-1] for chunk in ranked if len(chunk) == request.chunk]
    gates = [allotted.get(head.place, ANY_NUMBER).gate for head in heads]
    left: dict[str | None, int] = {one.gate: one.places for one in allotted.values() if one.places is not None}
    limit = _first_end(ends, gates, left)
    picked: list[tuple[Any, Head]] = []
    for key in heapq.merge(*ranked):
        gate = gates[key[3]]
        if gate in left and left[gate] <= 0:
            continue
        if len(picked) == request.wanted or (limit is not None and key > limit):
            break
        picked.append((key[2], heads[key[3]]))
        if gate in left:
            left[gate] -= 1
            limit = _first_end(ends, gates, left)
    return picked


def _first_end(ends: Sequence[Ranked], gates: Sequence[str | None], left: Mapping[str | None, int]) -> Ranked | None:
    """Where a chunk that may go on ends first; what is behind a gate that lets nothing more through does not go on."""
    return min((end for end in ends if left.get(gates[end[3]], 1) > 0), default=None)
