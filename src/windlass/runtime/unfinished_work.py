"""What commits of a node have left to be carried out by transactions of its own; a service of the node does it."""

from __future__ import annotations

import threading

from windlass.domain.ended import NOTHING_UNFINISHED, Unfinished
from windlass.runtime.service import Bell


class UnfinishedWork:
    """Collects what is left, and wakes the service that carries it out. From any thread."""

    def __init__(self) -> None:
        self.bell = Bell()
        self._lock = threading.Lock()
        self._left = NOTHING_UNFINISHED

    def add(self, left: Unfinished) -> None:
        """Add what a commit has left."""
        with self._lock:
            self._left |= left
        self.bell.ring()

    def take(self) -> Unfinished:
        """Remove and return everything."""
        with self._lock:
            left, self._left = self._left, NOTHING_UNFINISHED
        return left
