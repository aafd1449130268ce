"""Timeouts of all running attempts on one timer: a warning at 80 %, the end at 100 %."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from windlass.domain.deadlines import Deadlines
from windlass.engine.attempt import Attempt, Stop

logger = logging.getLogger("windlass.timeout")

WARN_AT = 0.8
GRACE = 5.0
"""How long a coroutine may take to end after it was cancelled; then its verdict is passed without it."""


class Timeouts:
    """Arms one deadline per attempt and ends what runs over."""

    def __init__(self, loop: asyncio.AbstractEventLoop, abandon: Callable[[Attempt], None]) -> None:
        self._loop = loop
        self._abandon = abandon
        self._deadlines: Deadlines[Attempt] = Deadlines()
        self._timer: asyncio.TimerHandle | None = None

    def arm(self, attempt: Attempt, timeout: float) -> None:
        """Start the clock of an attempt."""
        now = self._loop.time()
        attempt.ends_at = now + timeout
        self._arm(attempt, now + timeout * WARN_AT)

    def disarm(self, attempt: Attempt) -> None:
        """Stop it."""
        self._deadlines.disarm(attempt)

    def _arm(self, attempt: Attempt, at: float) -> None:
        self._deadlines.arm(attempt, at)
        if self._timer is None or at < self._timer.when():
            self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        next_at = self._deadlines.next_at()
        self._timer = None if next_at is None else self._loop.call_at(next_at, self._fire)

    def _fire(self) -> None:
        now = self._loop.time()
        for attempt in self._deadlines.expired(now):
            if attempt.stop is Stop.TIMEOUT:
                self._abandon(attempt)
            elif now < attempt.ends_at:
                logger.warning(
                    "job %s (%s) has used 80 %% of its timeout of %g s",
                    attempt.claim.job_id,
                    attempt.claim.target,
                    attempt.timeout,
                )
                self._deadlines.arm(attempt, attempt.ends_at)
            else:
                self._expire(attempt)
                self._deadlines.arm(attempt, now + GRACE)
        self._schedule()

    def _expire(self, attempt: Attempt) -> None:
        claim, timeout = attempt.claim, attempt.timeout
        logger.warning(
            "job %s (%s) exceeded its timeout of %g s and is being stopped", claim.job_id, claim.target, timeout
        )
        stop(attempt, Stop.TIMEOUT)

    def close(self) -> None:
        """Forget all deadlines."""
        if self._timer is not None:
            self._timer.cancel()


def stop(attempt: Attempt, why: Stop) -> None:
    """Ask an attempt to end: coroutines are cancelled, threads interrupted, and `ctx.check()` raises."""
    attempt.stop = why
    if attempt.context is not None:
        attempt.context.cancel()
    if attempt.task is not None:
        attempt.task.cancel()
