"""Reset of state in a forked child, which must not use its parent's connections, threads and locks."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable


def after_fork(method: Callable[[], None]) -> None:
    """Call a bound method in every child forked from now on, as long as its object lives."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        found = reference()
        if found is not None:
            found()

    os.register_at_fork(after_in_child=call)
