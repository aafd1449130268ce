"""How much a claim reads: of which levels, those that rank first, and how many rows of each.

A claim reads some rows of each level and takes the first ones of all. Of many levels it would read, and lock, many
times what it takes. Therefore levels are grouped into tiers of equal effective priority, and only the first tiers are
read; the claim takes nothing that could rank behind a level that was left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from windlass.domain.job import Claim
from windlass.engine.poll_steps import ClaimDue, Level
from windlass.stores.claim_order import Head, effective_priority

FEW: Final = 4
"""Number of levels up to which all are read."""
ALL: Final = 1 << 16
SMALLEST_CHUNK: Final = 8
WIDEST: Final = 1 << 10
"""Limit of the factor: after contention, it takes one full claim to halve it."""


class ClaimReach(NamedTuple):
    """What the next claim reads, by what the last ones needed."""

    tiers: int = ALL
    """How many tiers of levels are read."""
    widening: int = 1
    """Factor by which more rows of each level are read, because claims were cut short."""

    def chunk(self, levels: int, wanted: int) -> int:
        """Return the number of rows to read of each level.

        All that is wanted of one or two levels, a share of many. Powers of two, for few distinct statements.
        """
        share = wanted if levels <= 2 else max(SMALLEST_CHUNK, wanted // levels) * self.widening
        return 1 << (min(share, wanted) - 1).bit_length()

    def after_claim(self, claim: ClaimDue, jobs: Sequence[Claim], *, cut: bool) -> ClaimReach:
        """Record a claim: one that was not full and not cut has found too little in its tiers."""
        got, full = len(jobs), len(jobs) == claim.wanted
        widening, tiers = self.widening, self.tiers
        if full:
            widening = max(widening // 2, 1)
        elif cut and 2 * got < claim.wanted:
            widening = min(2 * widening, WIDEST)
        if claim.tiers:
            tiers = needed(jobs, claim.tiers) if full or cut else min(2 * tiers, ALL)
        return ClaimReach(tiers, widening)

    def after_look(self, *, due: bool) -> ClaimReach:
        """Record a look after a claim that was not full: whether jobs are due all the same."""
        return self._replace(widening=min(2 * self.widening, WIDEST) if due else 1)


class Chosen(NamedTuple):
    """The levels to read, the best ones of those left out, and the tier of each level that is read."""

    heads: list[Head]
    others: list[Head]
    tiers: Mapping[Level, int]


def choose(due: list[Head], limited: Collection[str], tiers: int, store_now: int, boost_us: int) -> Chosen:
    """Choose the first tiers of the levels that are due.

    Behind gates every level is read: its due time is when a gate may have room, and does not give its rank.
    """
    free = [head for head in due if head.lane is None and head.queue not in limited]
    if len(free) <= FEW:
        return Chosen(due, [], {})

    def rank(head: Head) -> int:
        return -effective_priority(head.level, head.due_at, store_now, boost_us)

    ranked = [list(tier) for _, tier in groupby(sorted(free, key=rank), key=rank)]
    of = {level_of(head): nth for nth, tier in enumerate(ranked[:tiers], 1) for head in tier}
    gated = [head for head in due if head.lane is not None or head.queue in limited]
    return Chosen([*gated, *(head for tier in ranked[:tiers] for head in tier)], _best(ranked[tiers:]), of)


def _best(omitted: Sequence[Sequence[Head]]) -> list[Head]:
    """Return the first due head of each priority level: no other can rank before it."""
    first: dict[int, Head] = {}
    for tier in omitted:
        for head in tier:
            known = first.get(head.level)
            if known is None or head.due_at < known.due_at:
                first[head.level] = head
    return list(first.values())


def is_cut(jobs: Sequence[Claim], chunk: int) -> bool:
    """Return whether a claim may have stopped because all rows that it read of a level were taken."""
    if len(jobs) < chunk:
        return False
    taken = Counter((job.queue, job.priority, job.lane) for job in jobs)
    return max(taken.values()) >= chunk


def needed(jobs: Sequence[Claim], tiers: Mapping[Level, int]) -> int:
    """Return how many tiers the jobs of a claim come from."""
    levels = {(job.queue, job.priority, job.lane) for job in jobs}
    return max((tiers.get(level, 1) for level in levels), default=1)


def level_of(head: Head) -> Level:
    """Return the level that a head is the first one of."""
    return head.queue, head.level, head.lane
