"""Timeouts of all running attempts on one timer: a warning at 80 %, the end at 100 %."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Collection

from windlass import loggers
from windlass.domain.timer import Deadlines
from windlass.engine.attempt import Attempt, Stop

logger = loggers.logger("windlass.timeout")

WARN_AT = 0.8
LONG = 30.0
"""Seconds from which a timeout may end up to a second late: a timer for every job costs more than it gives."""
ROUND = 1.0
GRACE = 5.0
"""How long a coroutine may take to end after it was cancelled; then its verdict is passed without it."""


class Timeouts:
    """Ends what runs over its time. Short timeouts are timed exactly; long ones are looked through once a second."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, running: set[Attempt], abandon: Callable[[Attempt], None]
    ) -> None:
        self._loop = loop
        self._running = running
        self._abandon = abandon
        self._context = contextvars.copy_context()  # timers are armed from within jobs, and tell of others
        self._deadlines: Deadlines[Attempt] = Deadlines()
        self._timer: asyncio.TimerHandle | None = None
        self._round = loop.call_later(ROUND, self._look_through)

    def arm(self, attempt: Attempt, timeout: float, since: float = 0.0) -> None:
        """Start the clock of an attempt whose body was entered so many seconds ago."""
        now = self._loop.time() - since
        attempt.timeout = timeout
        attempt.ends_at = now + timeout
        attempt.next_look = now + timeout * WARN_AT
        if timeout < LONG:
            self._arm(attempt)

    def disarm(self, attempt: Attempt) -> None:
        """Stop it."""
        if attempt.timeout is not None and attempt.timeout < LONG:
            self._deadlines.disarm(attempt)

    def _arm(self, attempt: Attempt) -> None:
        self._deadlines.arm(attempt, attempt.next_look)
        if self._timer is None or attempt.next_look < self._timer.when():
            self._schedule()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        next_at = self._deadlines.next_at()
        self._timer = None if next_at is None else self._loop.call_at(next_at, self._fire, context=self._context)

    def _fire(self) -> None:
        self._timer = None
        try:
            for attempt in self._deadlines.expired(self._loop.time()):
                if self._look_at(attempt):
                    self._deadlines.arm(attempt, attempt.next_look)
        finally:
            self._schedule()

    def _look_through(self) -> None:
        self._round = self._loop.call_later(ROUND, self._look_through)
        now = self._loop.time()
        late = [attempt for attempt in self._running if attempt.next_look <= now]
        for attempt in late:
            if attempt.timeout is not None and attempt.timeout >= LONG:  # the short ones have their own timer
                self._look_at(attempt)

    def _look_at(self, attempt: Attempt) -> bool:
        """Warn, end, or give up on an attempt whose time has come; True if it must be looked at again."""
        now = self._loop.time()
        if attempt.stop is Stop.CANCEL:
            return False  # it was told, and nobody waits for it
        if attempt.stop is Stop.TIMEOUT:
            self._abandon(attempt)
            return False
        if now < attempt.ends_at:
            claim, timeout = attempt.claim, attempt.timeout
            logger.warning("job %s (%s) has used 80 %% of its timeout of %g s", claim.job_id, claim.target, timeout)
            attempt.next_look = attempt.ends_at
            return True
        self._expire(attempt)
        attempt.next_look = now + GRACE
        return True

    def _expire(self, attempt: Attempt) -> None:
        claim, timeout = attempt.claim, attempt.timeout
        stop(attempt, Stop.TIMEOUT)
        logger.warning(
            "job %s (%s) exceeded its timeout of %g s and is being stopped", claim.job_id, claim.target, timeout
        )

    def close(self) -> None:
        """Look no more."""
        self._round.cancel()
        if self._timer is not None:
            self._timer.cancel()


async def ended(attempts: Collection[Attempt], timeout: float, forced: asyncio.Event | None = None) -> None:
    """Wait until all of these have ended, for so long, or until somebody loses patience."""
    tasks = {attempt.task for attempt in attempts if attempt.task is not None}
    if not tasks:
        return
    bodies = asyncio.ensure_future(asyncio.wait(tasks, timeout=timeout))
    impatience = asyncio.ensure_future((forced or asyncio.Event()).wait())
    await asyncio.wait({bodies, impatience}, return_when=asyncio.FIRST_COMPLETED)
    for waiter in (bodies, impatience):
        waiter.cancel()


def stop(attempt: Attempt, why: Stop) -> None:
    """Ask an attempt to end: coroutines are cancelled, threads interrupted, and `ctx.check()` raises.

    A thread whose job was canceled is only told: it has done nothing wrong, and an interrupt may hit it anywhere.
    """
    attempt.stop = why
    if attempt.context is not None:
        attempt.context.cancel()
    # A task that is cancelled before its first step never takes one: it looks at `stop` when it begins.
    begun = attempt.context is not None
    if attempt.task is not None and begun and not (why is Stop.CANCEL and attempt.in_thread):
        attempt.task.cancel()
