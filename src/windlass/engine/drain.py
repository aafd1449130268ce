"""The drain of a node's slots: running attempts may finish for a while, then they are stopped and released."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from windlass import loggers
from windlass.domain.clock import from_micros, wall_nanos
from windlass.engine.attempt import Attempt, Stop
from windlass.engine.timeouts import ended, stop

logger = loggers.logger("windlass.worker")

STOP_GRACE = 2.0
"""Seconds that bodies may take to end once a forced drain has cancelled them."""


class Drain:
    """Waits for running attempts and logs how many, until when, and how it ended."""

    def __init__(self, running: Collection[Attempt], give_up: Callable[[Attempt], None]) -> None:
        self._running = running
        self._give_up = give_up
        self.forced = asyncio.Event()
        """Set once nothing is waited for any more."""

    def force(self) -> None:
        """Stop waiting for running attempts."""
        self.forced.set()

    async def run(self, timeout: float) -> bool:
        """Return True if all running attempts have finished."""
        awaited = len(self._running)
        if awaited and timeout and not self.forced.is_set():
            logger.warning(
                "draining: %s, waiting until %s (%g s; node.drain_timeout)", _jobs(awaited), _local(timeout), timeout
            )
        await ended(self._running, timeout, self.forced)
        stopped = list(self._running)
        for attempt in stopped:
            stop(attempt, Stop.DRAIN)
        await ended(self._running, STOP_GRACE)
        for attempt in list(self._running):
            self._give_up(attempt)
        _log_end(awaited, len(stopped), sum(not attempt.over for attempt in stopped))
        return not stopped


def _jobs(count: int) -> str:
    return "1 job runs" if count == 1 else f"{count} jobs run"


def _local(seconds: float) -> str:
    """Return the local time at which the wait ends."""
    moment = from_micros(wall_nanos() // 1000 + int(seconds * 1_000_000))
    return moment.astimezone().strftime("%H:%M:%S")


def _log_end(awaited: int, stopped: int, lingering: int) -> None:
    if stopped:
        logger.warning(
            "drain forced: %d of %d running jobs finished, %d stopped and released to run again%s",
            awaited - stopped,
            awaited,
            stopped,
            f"; the bodies of {lingering} go on for now" if lingering else "",
        )
    elif awaited:
        logger.info("drained: all running jobs have finished")
