"""The default resilience strategy: circuits whose state is in the store, as far as this node knows it.

Claims check the store, so a job behind an open circuit is not claimed. This is for jobs that were claimed just before
the circuit opened.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from windlass.domain.circuit import NEVER

T = TypeVar("T")

SOON = timedelta(seconds=1)
"""Delay of a job whose circuit was opened by hand: the end is unknown, and its gate holds it back anyway."""


class StoreBreakers:
    """Answers from the last query of the store, at most about a second old."""

    def __init__(self, shut: Callable[[], Mapping[str, int]], now: Callable[[], int]) -> None:
        self._shut = shut
        self._now = now

    def available(self, service: str) -> bool:
        """Return whether its circuit lets calls through."""
        return self._shut().get(service, 0) <= self._now()

    def retry_delay(self, service: str) -> timedelta:
        """Return the time until its circuit allows trials."""
        until = self._shut().get(service, 0)
        return SOON if until >= NEVER else timedelta(microseconds=max(until - self._now(), 0))

    async def execute(self, service: str, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Make the call; its outcome is recorded in the transaction of the job's outcome."""
        del service
        return await call()
