"""The delay of a poller after a claim that returned fewer jobs than asked for: a pure function of its observations."""

from dataclasses import dataclass, fields
from itertools import takewhile
from typing import Final

from windlass.errors import InvalidOptionError

WINDOW: Final = 10
FULL_BATCHES: Final = 3
_QUICKER: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PollObservation:
    """What a poller has observed when it computes the delay."""

    recent: tuple[tuple[int, int], ...] = ()
    """(asked, got) of the last polls, newest last; only the last ten count."""
    idle_for: float = 0.0
    """Seconds since a poll last returned a job (or since the start)."""
    utilisation: float = 0.0
    """Share of the node's slots that are busy, 0 to 1."""
    woken: bool = False
    """Whether a wakeup has arrived since the poll before the last: more may follow at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptivePolling:
    """Short delays while jobs arrive, longer ones while they do not.

    A wakeup starts a burst. Otherwise the delay is `min_delay`, doubled by each empty poll in a row, halved on an idle
    node and doubled on a full one, within `min_delay` and `max_delay`; three full batches in a row divide it by four.
    After a long time without a job the poller waits `deep_idle_delay`.
    """

    burst_delay: float = 0.5
    min_delay: float = 2.0
    max_delay: float = 30.0
    deep_idle_delay: float = 60.0
    deep_idle_after: float = 300.0

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if not 0 < value < float("inf"):
                raise InvalidOptionError(f"poller.{option.name} must be more than 0 seconds, got {value!r}")
        if self.min_delay > self.max_delay:
            raise InvalidOptionError(
                f"poller.min_delay must not exceed poller.max_delay, got {self.min_delay!r} and {self.max_delay!r}"
            )

    def next_delay(self, observation: PollObservation) -> float:
        """Return the seconds to wait before the next poll, unless a wakeup or a known due time comes first."""
        if observation.woken:
            return self.burst_delay
        if observation.idle_for >= self.deep_idle_after:
            return self.deep_idle_delay
        polls = [poll for poll in observation.recent[-WINDOW:] if poll[0] > 0]
        delay = self._normal(_empty_in_a_row(polls), observation.utilisation)
        if _full_in_a_row(polls) < FULL_BATCHES:
            return delay
        return min(delay, max(delay / _QUICKER, self.burst_delay))

    def _normal(self, empty: int, utilisation: float) -> float:
        doubled: float = self.min_delay * 2.0 ** max(empty - 1, 0)
        load: float = 2.0 ** (2 * min(max(utilisation, 0.0), 1.0) - 1)
        return min(max(doubled * load, self.min_delay), self.max_delay)


def _empty_in_a_row(polls: list[tuple[int, int]]) -> int:
    return sum(1 for _ in takewhile(lambda poll: poll[1] == 0, reversed(polls)))


def _full_in_a_row(polls: list[tuple[int, int]]) -> int:
    return sum(1 for _ in takewhile(lambda poll: poll[1] >= poll[0], reversed(polls)))
