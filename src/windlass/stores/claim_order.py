"""What a claim requests, and its order: the heads of all priority levels, of queues and lanes, merged."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from windlass.domain.identity import FIRST_ID
from windlass.domain.lanes import QUEUE

QueueLane = tuple[str, str | None]
"""A queue, or one of its lanes: its jobs pass the same gates."""


class JobPosition(NamedTuple):
    """A position in the order of one priority level."""

    due_at: int
    job_id: str


FIRST = JobPosition(-(1 << 63), FIRST_ID)
"""Before all jobs."""

Starts = Mapping[tuple[str, int], JobPosition]
"""Where to begin reading, by queue and level; elsewhere with the first entry."""


class Head(NamedTuple):
    """One priority level of a queue or lane, and when its first job is due."""

    queue: str
    level: int
    due_at: int
    lane: str | None = None
    start: JobPosition | None = None
    """Where a claim begins to read, if not with the first entry: only entries of jobs that have ended stand before.

    In the answer of a look it is the position of the first job.
    """

    @property
    def queue_lane(self) -> QueueLane:
        """The queue, and the lane if it has one."""
        return self.queue, self.lane


class WaitingLane(NamedTuple):
    """A lane with waiting jobs: when the first one of each priority level is due."""

    queue: str
    lane: str
    dues: Mapping[int, int]

    @property
    def position(self) -> tuple[str, str]:
        """Its position among all lanes."""
        return self.queue, self.lane


class Trust(NamedTuple):
    """What a node has recently seen of gates: they had room for much more than it requests.

    A claim then need not wait for their locks before it chooses. That this was right is checked before anything counts.
    """

    asked: frozenset[str]
    """Names of the gates that were checked."""
    counted: frozenset[str]
    """Names of the checked gates that count permits."""


class ClaimRequest(NamedTuple):
    """A node's request: up to `wanted` jobs from these heads, `chunk` rows read of each."""

    node: str
    heads: Sequence[Head]
    wanted: int
    chunk: int
    boost_us: int
    limited: frozenset[str] = frozenset()
    """Queues known to have a limit; other queues are claimed from without checking for one."""
    turn: int = 0
    """The number of this claim of its node: released permits are counted every so many claims."""
    trust: Trust | None = None
    others: Sequence[Head] = ()
    """The best of the heads that are due and not claimed from: only jobs that rank before all of them are claimed."""


class Share(NamedTuple):
    """What the gates of a queue or lane allow during one claim."""

    gate: str | None
    """The gate that may run short, which all jobs behind it share.

    There is at most one (`domain.gates.most_at_once`).
    """
    permits: int | None
    """Number of free permits of this gate; None: enough for all."""
    holds: str | None
    """The permits that each job holds once it has passed."""

    @property
    def counts_queue(self) -> bool:
        """Whether the queue's own limit is counted."""
        return self.holds is not None and self.holds.startswith(HOLDS_QUEUE)


HOLDS_QUEUE = '["' + QUEUE
ANY_NUMBER = Share(None, None, None)


def is_time(due: object) -> bool:
    """Return whether a due time is valid: SQLite keeps whatever was stored there."""
    return isinstance(due, int | float)


def at_least(number: int) -> int:
    """Return the next power of two: each chunk size is a statement of its own, and so they stay few."""
    return 1 << max(number - 1, 0).bit_length()


def effective_priority(level: int, due: int, now: int, boost_us: int) -> int:
    """Return the priority, raised with the time that a job has waited; it may have come due since `now` was read."""
    return level + (max(now - due, 0) // boost_us if boost_us else 0)


Ranked = tuple[int, int, Any, int]
"""Effective priority, highest first; due time; id; which head."""


def merge_heads(
    heads: Sequence[Head],
    chunks: Sequence[Sequence[tuple[Any, int, int]]],
    request: ClaimRequest,
    now: int,
    shares: Mapping[QueueLane, Share],
) -> list[tuple[Any, Head]]:
    """Return the first `wanted` ids, with their heads, over all chunks, cut where an incomplete chunk ends.

    Beyond that the order is not known. Jobs behind a gate without a free permit are skipped.
    """

    def rank(row: tuple[Any, int, int], head: int) -> Ranked:
        job, due, priority = row
        return (-effective_priority(priority, due, now, request.boost_us), due, job, head)

    above = max(
        (effective_priority(one.level, one.due_at, now, request.boost_us) for one in request.others), default=-1
    )
    ranked = [[rank(row, nth) for row in chunk] for nth, chunk in enumerate(chunks) if chunk]
    ends = [chunk[-1] for chunk in ranked if len(chunk) == request.chunk]
    gates = [shares.get(head.queue_lane, ANY_NUMBER).gate for head in heads]
    left: dict[str | None, int] = {one.gate: one.permits for one in shares.values() if one.permits is not None}
    limit = _first_end(ends, gates, left)
    picked: list[tuple[Any, Head]] = []
    for key in heapq.merge(*ranked):
        if -key[0] <= above:
            break
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
    """Return where an incomplete chunk ends first; chunks behind a full gate do not count."""
    return min((end for end in ends if left.get(gates[end[3]], 1) > 0), default=None)
