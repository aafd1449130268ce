"""Where claims and looks begin to read each priority level, if many index entries of ended jobs precede the first job.

PostgreSQL keeps the index entries of ended jobs as long as some transaction may see them. A look counts the entries it
has read. If there are many, the next looks and claims begin at low-water marks: the positions of the last jobs
that were claimed, and of the first ones that were found. Once a second all is read from the first entry again. So a job
that appears below a mark, because its transaction took long, its due time is in the past or its node was lost, waits a
second more at most; and nothing is skipped as long as few entries precede it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from windlass.domain.job import Claim
from windlass.stores.claim_order import FIRST, Head, JobPosition, Starts

MANY: Final = 1_000
"""Number of entries that a look may read before low-water marks are used."""
LOOK_BACK: Final = 1.0
"""Seconds after which a look begins with the first entry again."""
SLACK_US: Final = 100_000
"""Marks stay this long behind the present: jobs that are stored at the same time do not appear in their order."""


class LowWater(NamedTuple):
    """Low-water marks of the levels of queues. Jobs in lanes are read from the first entry."""

    marks: Mapping[tuple[str, int], JobPosition] = MappingProxyType({})
    in_use: bool = False
    """Whether looks and claims begin at the marks."""
    whole: bool = True
    """Whether the last look began with the first entry."""
    checked_at: float = float("-inf")
    """When the last such look began."""

    @property
    def starts(self) -> Starts:
        """Return where a claim begins to read."""
        return self.marks if self.in_use else {}

    @property
    def look_starts(self) -> Starts:
        """Return where the current look begins to read."""
        return {} if self.whole else self.marks

    def overdue(self, now: float) -> bool:
        """Return whether the next look should begin with the first entry."""
        return self.in_use and now - self.checked_at >= LOOK_BACK

    def rest(self, now: float) -> float:
        """Return for how many seconds no such look is needed."""
        return float("inf") if self.whole else max(self.checked_at + LOOK_BACK - now, 0.0)

    def begin_look(self, now: float, *, hurry: bool) -> LowWater:
        """Begin a look; with `hurry`, as a job is known to be due, the next one begins with the first entry instead."""
        whole = not self.in_use or (self.overdue(now) and not hurry)
        return self._replace(whole=whole, checked_at=now if whole else self.checked_at)

    def after_look(self, heads: Iterable[Head], walked: int, store_now: int) -> LowWater:
        """Take what a look has found: the first job of each level, and how many entries it has read."""
        in_use = walked > MANY if self.whole else self.in_use
        found = {(head.queue, head.level): head.start for head in heads if head.start is not None}
        return self._replace(in_use=in_use)._raised(found, store_now)

    def after_claim(self, claims: Iterable[Claim], store_now: int) -> LowWater:
        """Take the jobs of a claim, in its order: in that of positions within each level."""
        last = {(claim.queue, claim.priority): claim for claim in claims if claim.lane is None}
        found = {level: JobPosition(claim.due_at, claim.job_id) for level, claim in last.items()}
        return self._raised(found, store_now)

    def expect(self, expected: Iterable[Head]) -> LowWater:
        """Begin with the first entry of levels in which jobs will be due before the mark."""
        early = {(head.queue, head.level) for head in expected if head.due_at <= self._due_of(head)}
        return self._replace(marks={key: mark for key, mark in self.marks.items() if key not in early})

    def _due_of(self, head: Head) -> int:
        return self.marks.get((head.queue, head.level), FIRST).due_at

    def forget(self) -> LowWater:
        """Read from the first entry again: jobs may have appeared anywhere."""
        return LowWater(in_use=self.in_use)

    def _raised(self, found: Mapping[tuple[str, int], JobPosition], store_now: int) -> LowWater:
        if not found:
            return self
        latest = JobPosition(store_now - SLACK_US, FIRST.job_id)
        return self._replace(marks={**self.marks, **{level: min(one, latest) for level, one in found.items()}})
