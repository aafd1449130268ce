"""How the cost of a function grows with its input, as a ratio within one run: no wall-clock time is asserted."""

from collections.abc import Callable
from time import process_time

ROUNDS = 3
SHORTEST = 1e-4
"""Seconds; what takes less cannot be measured."""


def grows_less(cost: Callable[[int], object], small: int, factor: int, limit: float) -> bool:
    """Whether `cost(small * factor)` takes less than `limit` times as long as `cost(small)`.

    The best of a few rounds counts; the large one is repeated only while it is above the limit.
    """
    allowed = limit * max(min(_time(cost, small) for _ in range(ROUNDS)), SHORTEST)
    return any(_time(cost, small * factor) < allowed for _ in range(ROUNDS))


def _time(cost: Callable[[int], object], size: int) -> float:
    start = process_time()
    cost(size)
    return process_time() - start
