"""Jobs that were canceled, or reported as canceled, and may still come in by a claim that is on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from windlass.domain.clock import monotonic
from windlass.engine.attempt import Attempt
from windlass.runtime.service import Bell

REMEMBERED = 30.0
"""Seconds for which the answer to a claim may be on its way, while its job is canceled."""
MOST_REPORTED = 10_000
"""Ids of notifications that are remembered: anybody can send any number. The others cost latency only."""


class CanceledJobs:
    """Remembers ids for as long as a claim of theirs may arrive, and about which ones the store is to be asked."""

    def __init__(self) -> None:
        self._canceled: dict[str, float] = {}
        self._reported: dict[str, float] = {}
        self._in_question: set[str] = set()
        self.bell = Bell()
        """Rung when the store is to be asked."""

    def add(self, ids: Iterable[str]) -> None:
        """These were canceled and are not here: if a claim that is on its way brings them, they do not begin."""
        self._canceled = _remembered(self._canceled, ids)

    def report(self, ids: Iterable[str]) -> None:
        """A notification names these as canceled: if a claim that is on its way brings them, the store is asked."""
        if len(self._reported) < MOST_REPORTED:
            self._reported |= dict.fromkeys(ids, monotonic() + REMEMBERED)

    def question(self, ids: Iterable[str]) -> None:
        """Have the store asked about these jobs, which are here."""
        self._in_question.update(ids)
        self.bell.ring()

    def take_in_question(self) -> set[str]:
        """Give the jobs to ask the store about, once."""
        taken, self._in_question = self._in_question, set()
        return taken

    def without(self, attempts: Sequence[Attempt], refuse: Callable[[Attempt], None]) -> Sequence[Attempt]:
        """Give those that may begin, and refuse the others."""
        if self._reported:
            self._reported = _remembered(self._reported)
            if here := [attempt.claim.job_id for attempt in attempts if attempt.claim.job_id in self._reported]:
                self.question(here)
        if not self._canceled:
            return attempts
        for attempt in attempts:
            if attempt.claim.job_id in self._canceled:
                refuse(attempt)
        return [attempt for attempt in attempts if attempt.claim.job_id not in self._canceled]


def _remembered(known: dict[str, float], new: Iterable[str] = ()) -> dict[str, float]:
    now = monotonic()
    return {job: until for job, until in known.items() if until > now} | dict.fromkeys(new, now + REMEMBERED)
