"""Outcomes that the store refuses although it answers and their values are valid: rights, schema, triggers.

They are kept and retried, apart from the others, until the store accepts them. An outcome is not given up for an error
that is not about its values: once the store is repaired, it is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.engine.attempt import Attempt

logger = loggers.logger("windlass.completer")

FIRST_PAUSE = 1.0
"""Seconds before the first retry; each one that writes nothing doubles them."""
LONGEST_PAUSE = 30.0
MAX_LOGGED = 5
"""Number of different errors that are logged until all outcomes are written."""


class SetAside:
    """The refused outcomes, in the order of their retries, with one pause for all of them."""

    def __init__(self, report: Callable[[str | None], None]) -> None:
        self._report = report
        self._attempts: deque[Attempt] = deque()
        self._pause = FIRST_PAUSE
        self._due = 0.0
        self._logged: set[str] = set()
        self._troubled = False
        self.unsure = False
        """Whether an earlier try to write one of them may have been committed."""

    def __len__(self) -> int:
        return len(self._attempts)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self._attempts)

    def add(self, attempts: Sequence[Attempt], error: str, *, unsure: bool) -> None:
        """Keep attempts whose outcome was refused with this error."""
        if not self._troubled:
            self._troubled = True
            self._pause, self._due = FIRST_PAUSE, monotonic() + FIRST_PAUSE
        self._attempts.extend(attempts)
        self.unsure = self.unsure or unsure
        if error not in self._logged and len(self._logged) < MAX_LOGGED:
            self._logged.add(error)
            logger.error(
                "%s; retrying in %g s, later every %g s at most; other outcomes are written meanwhile",
                _refusal(attempts, error),
                FIRST_PAUSE,
                LONGEST_PAUSE,
            )
        self._report(_refusal(self._attempts, error))

    def take(self, most: int) -> list[Attempt]:
        """Return those to be retried now, if it is time. The pause grows until one of them is written."""
        if not self._attempts or monotonic() < self._due:
            return []
        self._due = monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return [self._attempts.popleft() for _ in range(min(most, len(self._attempts)))]

    def tried(self, *, written: int) -> None:
        """Record how many of the taken ones were written: the others may soon be, too."""
        if written:
            self._pause, self._due = FIRST_PAUSE, monotonic()

    def settle(self) -> None:
        """Log the recovery if nothing is refused any more."""
        if self._troubled and not self._attempts:
            logger.info("the store accepts all outcomes again")
            self._logged.clear()
            self._troubled = self.unsure = False
            self._report(None)

    def hurry(self) -> None:
        """Have them retried now."""
        self._due = 0.0

    def due_in(self) -> float | None:
        """Return the seconds until the next retry; None when nothing is set aside."""
        return max(self._due - monotonic(), 0.0) if self._attempts else None


def _refusal(attempts: Sequence[Attempt], error: str) -> str:
    more = f" and of {len(attempts) - 1} more" if len(attempts) > 1 else ""
    return f"the store refuses to write the outcome of job {attempts[0].claim.job_id}{more}: {error}"
