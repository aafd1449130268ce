"""How the cost of a function grows with its input, as a ratio within one run: no wall-clock time is asserted."""

from collections.abc import Callable
from time import process_time

ROUNDS = 3


def growth(cost: Callable[[int], object], small: int, factor: int) -> float:
    """How many times longer `cost(small * factor)` takes than `cost(small)`; the best of a few rounds of each."""
    return _best(cost, small * factor) / max(_best(cost, small), 1e-4)


def _best(cost: Callable[[int], object], size: int) -> float:
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        cost(size)
        times.append(process_time() - start)
    return min(times)
