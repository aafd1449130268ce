"""How long a starting worker waits for a store that is not reachable."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeVar

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.domain.durations import seconds
from windlass.errors import StoreUnavailableError

logger = loggers.logger("windlass.worker")

T = TypeVar("T")

DEFAULT_WAIT: Final = 60.0
FIRST_PAUSE: Final = 0.25
LAST_PAUSE: Final = 2.0
PROMPT_START: Final = 1.0
"""Seconds in which a start in progress may still finish after a request to stop the worker."""


class StoreWait:
    """Decides after each failure whether to try the start again, and logs once that it waits and for what."""

    def __init__(self, wait: float | timedelta = DEFAULT_WAIT) -> None:
        self._seconds = seconds(wait, "wait")
        self._ends_at = monotonic() + self._seconds
        self._pause = FIRST_PAUSE
        self._logged = False

    def pause_after(self, error: StoreUnavailableError) -> float:
        """Return the seconds until the next attempt; raise the error when the time is up, or waiting does not help."""
        left = self._ends_at - monotonic()
        if error.lasting or left <= 0:
            raise error
        if not self._logged:
            self._logged = True
            logger.warning("the store is not reachable, waiting up to %g s for it: %s", self._seconds, error)
        pause, self._pause = min(self._pause, left), min(self._pause * 2, LAST_PAUSE)
        return pause

    def run(self, check: Callable[[], T]) -> T:
        """Block until `check` succeeds."""
        while True:
            try:
                return check()
            except StoreUnavailableError as error:
                threading.Event().wait(self.pause_after(error))

    async def start(self, start: Callable[[], Coroutine[Any, Any, None]], asked: asyncio.Event) -> bool:
        """Start a worker as soon as the store is available; return False if a request to stop comes before that."""
        while not asked.is_set():
            starting = asyncio.ensure_future(start())
            await _first(starting, asked)
            if not starting.done():
                await asyncio.wait({starting}, timeout=PROMPT_START)
                starting.cancel()
                await asyncio.wait({starting}, timeout=PROMPT_START)
            if starting.done() and not starting.cancelled():
                try:
                    await starting
                except StoreUnavailableError as error:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(asked.wait(), self.pause_after(error))
                else:
                    return True
        return False


async def _first(starting: asyncio.Future[None], asked: asyncio.Event) -> None:
    stopping = asyncio.ensure_future(asked.wait())
    both: set[asyncio.Future[Any]] = {starting, stopping}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
