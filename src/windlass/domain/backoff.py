"""The delay of a failed job before its next attempt."""

import random as randomness
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, Self

from windlass.domain.durations import MAX_SECONDS, seconds
from windlass.errors import InvalidOptionError, SerializationError

MAX_EXPONENT: Final = 20
MAX_DELAY_MS: Final = 24 * 60 * 60 * 1000
MAX_BASE_MS: Final = MAX_SECONDS * 1000

Kind = Literal["none", "fixed", "exponential"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """A retry delay rule; made by `none`, `fixed` and `exponential`.

    ```python
    Backoff.exponential(1).delay(3) == timedelta(seconds=4)
    ```
    """

    kind: Kind = "none"
    base_ms: int = 0
    jitter: float = 0.0

    @classmethod
    def none(cls) -> Self:
        """Retry at once."""
        return cls()

    @classmethod
    def fixed(cls, base: float | timedelta) -> Self:
        """Wait the same time before every retry, without an upper limit."""
        return cls("fixed", _milliseconds(base))

    @classmethod
    def exponential(cls, base: float | timedelta, jitter: float = 0.0) -> Self:
        """Wait `base`, then twice that, four times that … up to 24 hours.

        `jitter` is the random fraction of each delay: 0.2 waits between 80 % and 100 % of it, 1.0 (full
        jitter) anything up to it.
        """
        return cls("exponential", _milliseconds(base), _fraction(jitter))

    def delay(self, attempt: int, random: Callable[[], float] | None = None) -> timedelta:
        """Return the delay after failed attempt number `attempt` (the first is 1), in whole milliseconds.

        `random` returns numbers from 0 to 1 for the jitter; tests pass their own.
        """
        if attempt < 1:
            raise InvalidOptionError(f"backoff attempt counts from 1 (the first failure), got {attempt!r}")
        if self.kind != "exponential":
            return timedelta(milliseconds=self.base_ms)
        longest = min(self.base_ms << min(attempt - 1, MAX_EXPONENT), MAX_DELAY_MS)
        if not self.jitter:
            return timedelta(milliseconds=longest)
        chance = (random or randomness.random)()
        return timedelta(milliseconds=int(longest * (1 - self.jitter * chance)))

    def to_json(self) -> list[Any] | None:
        """Return the stored form: None, `["fixed", ms]` or `["exponential", ms, jitter]`."""
        match self.kind:
            case "none":
                return None
            case "fixed":
                return ["fixed", self.base_ms]
            case "exponential":
                return ["exponential", self.base_ms, self.jitter]

    @classmethod
    def from_json(cls, stored: list[Any] | None) -> Self:
        """Return the backoff of a form that `to_json` returned."""
        match stored:
            case None:
                return cls()
            case ["fixed", int(base_ms)] if 0 <= base_ms <= MAX_BASE_MS:
                return cls("fixed", base_ms)
            case ["exponential", int(base_ms), int(jitter) | float(jitter)] if (
                0 <= base_ms <= MAX_BASE_MS and 0 <= jitter <= 1
            ):
                return cls("exponential", base_ms, float(jitter))
        raise SerializationError(
            f'stored backoff must be null, ["fixed", ms] or ["exponential", ms, jitter], got {stored!r}; '
            "was it written by a newer version?"
        )


def _milliseconds(base: float | timedelta) -> int:
    return round(seconds(base, "backoff base") * 1000)


def _fraction(jitter: object) -> float:
    if isinstance(jitter, int | float) and not isinstance(jitter, bool) and 0 <= jitter <= 1:
        return float(jitter)
    raise InvalidOptionError(f"backoff jitter must be a fraction from 0.0 to 1.0, got {jitter!r}")
