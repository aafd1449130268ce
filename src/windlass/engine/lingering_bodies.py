"""Bodies that go on after the outcomes of their attempts: what they hold of limits is released when they end."""

from __future__ import annotations

from collections.abc import Callable

from windlass.engine.attempt import Attempt, Stop


class LingeringBodies:
    """Knows which bodies go on, and has their permits released once each of them has ended."""

    def __init__(self, release: Callable[[Attempt], None]) -> None:
        self._release = release
        self._attempts: set[Attempt] = set()
        """Those whose permits are their bodies' now: the store has kept them, or the claims are gone."""

    def release(self, attempt: Attempt) -> None:
        """Release the permits of a body that has ended, or will not begin, and whose outcome is not written."""
        self._release(attempt)

    def hand_over(self, release: Callable[[Attempt], None]) -> None:
        """Have permits released by something that outlives the node, from now on, on any thread."""
        self._release = release

    def thread_ended(self, attempt: Attempt) -> None:
        """Its body has ended on its thread, maybe long after its job."""
        if attempt.thread is not None:
            attempt.thread.goes_on = False
        self.look_at(attempt)

    def written(self, attempt: Attempt) -> None:
        """The store has kept the permits of its body, or somebody else's write was first: they are free when it ends.

        Not before: permits that are released before they are kept would be kept for ever.
        """
        self._attempts.add(attempt)
        self.look_at(attempt)

    def look_at(self, attempt: Attempt) -> None:
        """Something of it has ended."""
        if attempt not in self._attempts and attempt.stop is not Stop.CANCEL:
            return
        if attempt.over:
            self._attempts.discard(attempt)
            self.release(attempt)
        else:
            self._attempts.add(attempt)

    def attempts(self) -> list[Attempt]:
        """Those whose bodies go on."""
        return list(self._attempts)
