"""Bodies that stand in line for a thread: the next one that is done with another body enters the first of them.

A thread that had to ask the loop for its next body would stand still for as long as the loop has other things to do:
at bodies of a few milliseconds that is a quarter of the time.
"""

from __future__ import annotations

from collections import deque

from windlass.engine.attempt import Attempt
from windlass.runtime.threads import Turn


class Line(deque[Attempt]):
    """Attempts that are made ready, in the order of their claims. All of it on the loop."""

    def join(self, attempt: Attempt, turn: Turn) -> None:
        """Put an attempt at the end."""
        attempt.turn = turn
        self.append(attempt)

    def begin(self) -> Attempt:
        """Take out the first: a slot is free, so its body begins now, if it has not."""
        attempt = self.popleft()
        if attempt.turn is not None:
            attempt.turn.begin()
        return attempt

    def withdraw(self, attempt: Attempt) -> bool:
        """Take out an attempt whose body must not begin; False if it has."""
        if attempt.turn is None or not attempt.turn.withdraw():
            return False
        self.remove(attempt)
        if attempt.task is not None:
            attempt.task.cancel()
        return True

    def withdrawn(self, before: float = float("inf")) -> list[Attempt]:
        """Take out all that came in before then and have not begun."""
        return [attempt for attempt in list(self) if attempt.received < before and self.withdraw(attempt)]
