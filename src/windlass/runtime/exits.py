"""What must be closed before the interpreter ends, while threads and executors still work.

`atexit` comes too late: by then no executor takes work, and a worker that still runs could not drain.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - registers a hook of its own, before ours: the last one runs first
import os
import threading
from collections.abc import Callable

GRACE = 2.0
"""Seconds that threads may still take once the interpreter is ending after a forced drain."""

_closing: list[Callable[[], None]] = []
_forced: list[int] = []
_last_acts: list[Callable[[], None]] = []


def at_exit(close: Callable[[], None]) -> None:
    """Call `close` before the interpreter ends, unless it is forgotten first."""
    _closing.append(close)


def forget(close: Callable[[], None]) -> None:
    """Not needed any more; safe to call twice."""
    if close in _closing:
        _closing.remove(close)


def before_end(act: Callable[[], None]) -> None:
    """Call `act` when nothing of this process goes on but daemon threads, which end with it."""
    _last_acts.append(act)


def forget_act(act: Callable[[], None]) -> None:
    """Not needed any more; safe to call twice."""
    if act in _last_acts:
        _last_acts.remove(act)


def end_with(code: int) -> None:
    """Let nobody hold the interpreter up when it ends: threads of bodies that were given up may never return.

    Python waits for ever for the threads of its executors (`asyncio.to_thread`); here the process ends with `code`,
    after a grace for what is well behaved.
    """
    _forced.append(code)


def _close_all() -> None:
    while _closing:
        _closing.pop()()
    others = [thread for thread in threading.enumerate() if not thread.daemon]
    if len(others) <= 1:  # the main thread is one
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


# Not public, but what the standard library's own executors use; where it is missing, the later hook must do.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
