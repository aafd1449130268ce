"""Garbage collection of a process that is a worker and nothing else.

Every job makes a few dozen short-lived objects and no cycles. Python's collector looks through the young ones after
every 700, a tenth of a worker's time; a worker lets it look after every 20,000, and not at what was there before.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 20_000


@contextmanager
def seldom() -> Iterator[None]:
    """Collect less often as long as this is open. Who set a higher threshold, or switched it off, keeps that."""
    before = gc.get_threshold()
    if before[0] == 0 or before[0] >= YOUNG_OBJECTS:
        yield
        return
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
