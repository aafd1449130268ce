"""Canceled jobs, confirmed or reported, that a claim in progress may still bring in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from windlass.domain.clock import monotonic
from windlass.engine.attempt import Attempt
from windlass.runtime.service import Bell

REMEMBERED = 30.0
"""Seconds for which a claim's answer may be in transit while its job is canceled."""
MAX_REPORTED = 10_000
"""Number of ids of notifications that are kept: any client can send any number. Others only cost latency."""


class CanceledJobs:
    """Keeps ids as long as a claim may bring them in, and those that have to be looked up in the store."""

    def __init__(self) -> None:
        self._canceled: dict[str, float] = {}
        self._reported: dict[str, float] = {}
        self._in_question: set[str] = set()
        self.bell = Bell()
        """Rung when the store has to be queried."""

    def add(self, ids: Iterable[str]) -> None:
        """Record canceled jobs that are not here: if a claim in progress brings them in, they do not start."""
        self._canceled = _remembered(self._canceled, ids)

    def report(self, ids: Iterable[str]) -> None:
        """Record jobs that a notification calls canceled.

        If a claim in progress brings them in, the store is queried.
        """
        if len(self._reported) < MAX_REPORTED:
            self._reported |= dict.fromkeys(ids, monotonic() + REMEMBERED)

    def question(self, ids: Iterable[str]) -> None:
        """Have the store queried about these jobs, which are here."""
        self._in_question.update(ids)
        self.bell.ring()

    def take_in_question(self) -> set[str]:
        """Return the jobs to look up, once."""
        taken, self._in_question = self._in_question, set()
        return taken

    def without(self, attempts: Sequence[Attempt], refuse: Callable[[Attempt], None]) -> Sequence[Attempt]:
        """Return the attempts that may start, and refuse the others."""
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
