"""Bodies that still run after the outcomes of their attempts: their permits are released when they end."""

from __future__ import annotations

from collections.abc import Callable

from windlass.engine.attempt import Attempt, Stop


class LingeringBodies:
    """Keeps track of bodies that still run, and has their permits released once each has ended."""

    def __init__(self, release: Callable[[Attempt], None]) -> None:
        self._release = release
        self._attempts: set[Attempt] = set()
        """Attempts whose bodies own their permits: the store has moved them, or the claims are lost."""

    def release(self, attempt: Attempt) -> None:
        """Release the permits of a body that has ended, or will not start, and whose outcome is not written."""
        self._release(attempt)

    def hand_over(self, release: Callable[[Attempt], None]) -> None:
        """Have permits released by a part that outlives the node from now on, on any thread."""
        self._release = release

    def thread_ended(self, attempt: Attempt) -> None:
        """Handle a body that has ended on its thread, maybe long after its job."""
        if attempt.thread is not None:
            attempt.thread.goes_on = False
        self.look_at(attempt)

    def written(self, attempt: Attempt) -> None:
        """Record that the store has moved the permits to the body, or another write came first.

        They are released when the body ends, and not before: permits that are released before they are moved would
        leak.
        """
        self._attempts.add(attempt)
        self.look_at(attempt)

    def look_at(self, attempt: Attempt) -> None:
        """Release the permits if both task and body have ended."""
        if attempt not in self._attempts and attempt.stop is not Stop.CANCEL:
            return
        if attempt.over:
            self._attempts.discard(attempt)
            self.release(attempt)
        else:
            self._attempts.add(attempt)

    def attempts(self) -> list[Attempt]:
        """Return the attempts whose bodies still run."""
        return list(self._attempts)
