"""Timeouts of all running attempts on one timer: a warning at 80 %, the end at 100 %."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Collection

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.domain.timer import Deadlines
from windlass.engine.attempt import Attempt, Deadline, Stop

logger = loggers.logger("windlass.timeout")

WARN_AT = 0.8
LONG = 30.0
"""Seconds from which a timeout may fire up to a second late: a timer for every job costs more than it gains."""
PRECISION = 0.001
"""Seconds by which two computations of the same deadline may differ."""
ROUND = 1.0
GRACE = 5.0
"""Seconds that a coroutine may take to end after it was cancelled; then its verdict is made without it."""


class Timeouts:
    """Stops attempts that exceed their timeout. Short timeouts are exact; long ones are checked once a second."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, running: set[Attempt], abandon: Callable[[Attempt], None]
    ) -> None:
        self._loop = loop
        self._running = running
        self._abandon = abandon
        self._context = contextvars.copy_context()  # timers are armed from within jobs, and log about others
        self._deadlines: Deadlines[Attempt] = Deadlines()
        self._timer: asyncio.TimerHandle | None = None
        self._round = loop.call_later(ROUND, self._check_long)

    def arm(self, attempt: Attempt, timeout: float, since: float = 0.0) -> None:
        """Start the timeout of an attempt whose body was entered `since` seconds ago."""
        began = self._loop.time() - since
        attempt.deadline = deadline = Deadline(timeout, began + timeout, began + timeout * WARN_AT)
        if timeout < LONG:
            self._deadlines.arm(attempt, deadline.next_check)
            if self._timer is None or deadline.next_check < self._timer.when():
                self._schedule()

    def disarm(self, attempt: Attempt) -> None:
        """Stop the timeout of an attempt."""
        if attempt.deadline is not None and attempt.deadline.timeout < LONG:
            self._deadlines.disarm(attempt)

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        next_at = self._deadlines.next_at()
        self._timer = None if next_at is None else self._loop.call_at(next_at, self._fire, context=self._context)

    def _fire(self) -> None:
        self._timer = None
        try:
            for attempt in self._deadlines.expired(self._loop.time()):
                if attempt.deadline is not None and self._check(attempt, attempt.deadline):
                    self._deadlines.arm(attempt, attempt.deadline.next_check)
        finally:
            self._schedule()

    def _check_long(self) -> None:
        """Check the long ones; short ones have their own timer."""
        self._round = self._loop.call_later(ROUND, self._check_long)
        now = self._loop.time()
        armed = [(attempt, attempt.deadline) for attempt in self._running if attempt.deadline is not None]
        for attempt, deadline in armed:
            if deadline.timeout >= LONG and deadline.next_check <= now:
                self._check(attempt, deadline)

    def _check(self, attempt: Attempt, deadline: Deadline) -> bool:
        """Warn, stop, or give up on an attempt whose time has come; return True if it must be checked again."""
        now = self._loop.time()
        if attempt.stop is Stop.CANCEL:
            return False  # it was asked to end, and its outcome does not count
        if attempt.stop is Stop.TIMEOUT:
            self._abandon(attempt)
            return False
        if attempt.guard is not None and _begin_after_guard(attempt, deadline, now):
            return True
        facts = (attempt.claim.job_id, attempt.claim.target, deadline.timeout)
        if now < deadline.ends_at:
            logger.warning("job %s (%s) has used 80 %% of its timeout of %g s", *facts)
            deadline.next_check = deadline.ends_at
            return True
        stop(attempt, Stop.TIMEOUT)
        logger.warning("job %s (%s) exceeded its timeout of %g s and is being stopped", *facts)
        deadline.next_check = now + GRACE
        return True

    def close(self) -> None:
        """Stop checking."""
        self._round.cancel()
        if self._timer is not None:
            self._timer.cancel()


def _begin_after_guard(attempt: Attempt, deadline: Deadline, now: float) -> bool:
    """Move the deadline of a guarded follower: its time begins with its body. Return False if it was there before.

    Its predicate has a timeout of its own. A job that was stopped meanwhile would count as tried, and as judged.
    """
    used = 0.0 if attempt.started is None else monotonic() - attempt.started
    ends_at = now - used + deadline.timeout
    if attempt.started is not None and ends_at - deadline.ends_at < PRECISION:
        return False
    deadline.ends_at, deadline.next_check = ends_at, ends_at - deadline.timeout * (1 - WARN_AT)
    return True


async def ended(attempts: Collection[Attempt], timeout: float, forced: asyncio.Event | None = None) -> None:
    """Wait until all of these have ended, up to `timeout`, or until `forced` is set."""
    tasks = {attempt.task for attempt in attempts if attempt.task is not None}
    if not tasks:
        return
    bodies = asyncio.ensure_future(asyncio.wait(tasks, timeout=timeout))
    force = asyncio.ensure_future((forced or asyncio.Event()).wait())
    await asyncio.wait({bodies, force}, return_when=asyncio.FIRST_COMPLETED)
    for waiter in (bodies, force):
        waiter.cancel()


def stop(attempt: Attempt, why: Stop) -> None:
    """Ask an attempt to end: coroutines are cancelled, threads interrupted, and `ctx.check()` raises.

    A thread whose job was canceled is only asked: it has done nothing wrong, and an interrupt may occur at any line.
    """
    attempt.stop = why
    if attempt.context is not None:
        attempt.context.cancel()
    # A task that is cancelled before its first step never runs: it checks `stop` when it starts.
    begun = attempt.context is not None
    if attempt.task is not None and begun and not (why is Stop.CANCEL and attempt.thread is not None):
        attempt.task.cancel()
