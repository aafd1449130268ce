"""Waiting for a condition that another process brings about: asked again and again, with a deadline."""

import threading
from collections.abc import Callable
from typing import TypeVar

from windlass.domain.clock import monotonic

T = TypeVar("T")

PAUSE = 0.02


def until(condition: Callable[[], T | None], what: str, timeout: float = 90.0) -> T:
    """Give the first true answer of `condition`; an AssertionError that says what was waited for if none comes."""
    ends_at = monotonic() + timeout
    pause = threading.Event()
    while True:
        answer = condition()
        if answer:
            return answer
        if monotonic() > ends_at:
            raise AssertionError(f"waited {timeout:g} s in vain: {what}")
        pause.wait(PAUSE)
