"""What follows a delivery: the decision about an error, and the waits of rows and of destinations. Pure functions."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple

from windlass.domain.exception_chain import delays_asked, forbidding

FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 300.0
LONGEST_ASKED: Final = 3_600.0
"""Longest wait in seconds that a destination may request."""
SPREAD: Final = 0.25
"""Largest share of a wait that is left out at random, so that rows that failed together are not tried together."""
AT_ONCE: Final = 16
"""Number of deliveries to one destination at a time."""
MOST_FAILURES: Final = 3
"""Number of failures without a success between them after which a destination is suspended for a while."""


class DeliveryFailure(NamedTuple):
    """What an error of an outlet means."""

    final: bool
    """Whether it is refused permanently."""
    asked: float | None = None
    """Seconds that the destination requests to wait."""
    cause: BaseException | None = None
    """What is to be recorded; None: the error itself."""


def failure_of(error: BaseException) -> DeliveryFailure:
    """Return what an error of an outlet means: `DoNotRetry` refuses permanently, `RetryAfter` requests a wait."""
    if (cause := forbidding(error)) is not None:
        return DeliveryFailure(final=True, cause=cause)
    asked = [delay.total_seconds() for delay in delays_asked(error) if isinstance(delay, timedelta)]
    return DeliveryFailure(final=False, asked=min(max(*asked, 0.0), LONGEST_ASKED) if asked else None)


def backoff(failures: int, spread: float) -> float:
    """Return the seconds to wait after so many failures: 1 s, 2 s, up to 5 minutes, less a random part.

    `spread` is a random number from 0 up to 1. Example: `backoff(3, 0.0) == 4.0`
    """
    full = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 30))
    return full * (1 - SPREAD * spread)


def delay_of(failure: DeliveryFailure, failures: int, spread: float) -> float:
    """Return the seconds until the next attempt of a row that has failed so many times: as requested, else `backoff`.

    An answer that asks for less than a second, e.g. a date of a clock that is behind, would be tried without a pause.
    """
    if failure.asked is not None and failure.asked >= FIRST_DELAY:
        return failure.asked
    return backoff(failures, spread)


class DestinationHealth(NamedTuple):
    """The health of a destination, judged by its last deliveries."""

    failures: int = 0
    """Since the last success."""
    rests: int = 0
    """How often in a row it was suspended."""
    asked: float = 0.0
    """Seconds that it requested to wait."""

    @property
    def at_once(self) -> int:
        """Number of deliveries at a time: one, until it has answered again."""
        return 1 if self.rests else AT_ONCE

    @property
    def must_rest(self) -> bool:
        """Whether no further delivery should begin for a while."""
        return self.asked > 0 or self.failures >= (1 if self.rests else MOST_FAILURES)

    def answered(self) -> DestinationHealth:
        """Return the health after a delivery that was accepted or permanently refused."""
        return DestinationHealth(asked=self.asked)

    def failed(self, asked: float | None) -> DestinationHealth:
        """Return the health after a delivery that failed."""
        return self._replace(failures=self.failures + 1, asked=max(self.asked, asked or 0.0))

    def rest(self, spread: float) -> tuple[float, DestinationHealth]:
        """Return the seconds for which it is suspended, and its health after that."""
        rests = self.rests + 1
        return max(backoff(rests, spread), self.asked), DestinationHealth(rests=rests)
