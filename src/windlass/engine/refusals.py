"""Jobs that were canceled before their claim came in: they do not begin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from windlass.domain.clock import monotonic
from windlass.engine.attempt import Attempt

REMEMBERED = 30.0
"""Seconds for which the answer to a claim may be on its way, while its job is canceled."""


class Refusals:
    """Remembers ids for as long as a claim of theirs may still arrive."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def add(self, ids: Iterable[str]) -> None:
        """These were canceled and are not here: if a claim that is on its way brings them, they do not begin."""
        now = monotonic()
        self._until = {job: until for job, until in self._until.items() if until > now}
        self._until |= dict.fromkeys(ids, now + REMEMBERED)

    def wanted(self, attempts: Sequence[Attempt], refused: Callable[[Attempt], None]) -> Sequence[Attempt]:
        """Those that may begin; the others are told of."""
        if not self._until:
            return attempts
        for attempt in attempts:
            if attempt.claim.job_id in self._until:
                refused(attempt)
        return [attempt for attempt in attempts if attempt.claim.job_id not in self._until]
