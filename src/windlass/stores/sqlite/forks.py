"""Forks and SQLite: a child gets copies of SQLite's locks, but not the threads that would release them.

Therefore a fork waits until no thread uses SQLite, and threads that want to use it wait for the fork. Connections of
the parent are not even closed in the child: that alone would touch the parent's files.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

LONGEST_WAIT = 10.0
"""Seconds that a fork waits; a transaction that takes longer is not waited for."""

_not_closed_here: list[object] = []


class ForkGate:
    """Entered around every use of SQLite (`with FORK_GATE:`), any number of threads at a time; shut while forking."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(before=self._shut, after_in_parent=self._reopen, after_in_child=self._begin)

    def _begin(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._forking = 0

    def __enter__(self) -> None:
        with self._changed:
            while self._forking:
                self._changed.wait()
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._inside -= 1
            if self._forking:
                self._changed.notify_all()

    def _shut(self) -> None:
        with self._changed:
            self._forking += 1
            self._changed.wait_for(lambda: not self._inside, LONGEST_WAIT)

    def _reopen(self) -> None:
        with self._changed:
            self._forking -= 1
            self._changed.notify_all()


FORK_GATE = ForkGate()


def never_close_in_child(*things: object) -> None:
    """Keep objects with connections of the parent from ever being closed in this child."""
    _not_closed_here.append(things)
