"""Hooks that run before the interpreter exits, while threads and executors still work.

`atexit` runs too late: by then executors accept no work, and a running worker could not drain.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - registers its hook before ours: the last one registered runs first
import os
import threading
from collections.abc import Callable

GRACE = 2.0
"""Seconds that threads may still take when the interpreter exits after a forced drain."""

_closing: list[Callable[[], None]] = []
_forced: list[int] = []
_last_acts: list[Callable[[], None]] = []


def at_exit(close: Callable[[], None]) -> None:
    """Call `close` before the interpreter exits, unless `forget` is called first."""
    _closing.append(close)


def forget(close: Callable[[], None]) -> None:
    """Unregister a `close`; safe to call twice."""
    if close in _closing:
        _closing.remove(close)


def before_end(act: Callable[[], None]) -> None:
    """Call `act` when only daemon threads remain, which end with the process."""
    _last_acts.append(act)


def forget_act(act: Callable[[], None]) -> None:
    """Unregister an `act`; safe to call twice."""
    if act in _last_acts:
        _last_acts.remove(act)


def end_with(code: int) -> None:
    """Exit with `code` even if threads of abandoned bodies never return.

    Python waits forever for the threads of its executors (`asyncio.to_thread`). With this the process exits after a
    grace period for threads that end in time.
    """
    _forced.append(code)


def _close_all() -> None:
    while _closing:
        _closing.pop()()
    others = [thread for thread in threading.enumerate() if not thread.daemon]
    if len(others) <= 1:  # the main thread counts
        _act()
    if _forced:
        threading.Thread(target=_end, args=(_forced[-1],), name="windlass-end", daemon=True).start()


def _end(code: int) -> None:
    threading.Event().wait(GRACE)
    _act()
    os._exit(code)


def _act() -> None:
    while _last_acts:
        _last_acts.pop()()


# Not public, but the standard library's executors use it; where it is missing, the later hook has to do.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
