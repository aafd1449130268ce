"""Work that commits of a node have not finished: a service of the node carries it out in later transactions."""

from __future__ import annotations

import threading

from windlass.domain.ended import NOTHING_UNFINISHED, Unfinished
from windlass.runtime.service import Bell


class UnfinishedWork:
    """Collects unfinished work, and wakes the service that carries it out. From any thread."""

    def __init__(self) -> None:
        self.bell = Bell()
        self._lock = threading.Lock()
        self._work = NOTHING_UNFINISHED

    def add(self, work: Unfinished) -> None:
        """Add unfinished work of a commit."""
        with self._lock:
            self._work |= work
        self.bell.ring()

    def take(self) -> Unfinished:
        """Remove and return everything."""
        with self._lock:
            work, self._work = self._work, NOTHING_UNFINISHED
        return work
