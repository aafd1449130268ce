"""How soon threads take turns, in a process that only runs a worker.

A thread that wants to run Python code asks the running one for the GIL after `sys.getswitchinterval()`: 5 ms by
default. A busy event loop rarely releases it before. The writer of a SQLite file, and threads of bodies, need it again
after each statement or system call, and lost a fifth of their time by that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

INTERVAL = 0.0001


@contextmanager
def frequent() -> Iterator[None]:
    """Let threads take turns sooner inside the block. A shorter interval is left alone."""
    before = sys.getswitchinterval()
    if before <= INTERVAL:
        yield
        return
    sys.setswitchinterval(INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
