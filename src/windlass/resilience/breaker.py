"""The default resilience strategy: circuits whose state is in the store, as far as this node knows it.

Claims see the store itself, so a job behind an open circuit is not claimed. This is for those that were claimed just
before it opened.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from windlass.domain.circuit import NEVER

T = TypeVar("T")

SOON = timedelta(seconds=1)
"""When a job is due again whose circuit was opened by hand: nobody knows until when, and its gate keeps it back."""


class StoreBreakers:
    """Answers from what the last look at the store found, at most about a second ago."""

    def __init__(self, shut: Callable[[], Mapping[str, int]], now: Callable[[], int]) -> None:
        self._shut = shut
        self._now = now

    def available(self, service: str) -> bool:
        """Whether its circuit lets calls through."""
        return self._shut().get(service, 0) <= self._now()

    def retry_delay(self, service: str) -> timedelta:
        """The time until its circuit lets trials through."""
        until = self._shut().get(service, 0)
        return SOON if until >= NEVER else timedelta(microseconds=max(until - self._now(), 0))

    async def execute(self, service: str, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Just call: how it went is noted in the transaction of the outcome."""
        del service
        return await call()
