"""What must be closed before the interpreter ends, while threads and executors still work.

`atexit` comes too late: by then no executor takes work, and a worker that still runs could not drain.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - registers a hook of its own, before ours: the last one runs first
import threading
from collections.abc import Callable

_closing: list[Callable[[], None]] = []


def at_exit(close: Callable[[], None]) -> None:
    """Call `close` before the interpreter ends, unless it is forgotten first."""
    _closing.append(close)


def forget(close: Callable[[], None]) -> None:
    """Not needed any more; safe to call twice."""
    if close in _closing:
        _closing.remove(close)


def _close_all() -> None:
    while _closing:
        _closing.pop()()


# Not public, but what the standard library's own executors use; where it is missing, the later hook must do.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
