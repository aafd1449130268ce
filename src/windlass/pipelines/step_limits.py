"""Time limits of the running steps of one node, all on one timer: one of its own costs more than a quick step."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, Self

from windlass.domain.timer import Deadlines

ROUND: Final = 1.0
"""Seconds after which the timer looks again at the latest; so it does not outlive the last step by more."""


class StepLimits:
    """Arms and disarms limits by a few dictionary operations; they expire up to 50 ms late, and never early."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._deadlines: Deadlines[StepLimit] = Deadlines()
        self._timer: asyncio.TimerHandle | None = None

    def limit(self, seconds: float | None) -> StepLimit:
        """Return the limit of a call, which begins when it is entered; None: the call may take any time."""
        return StepLimit(self, seconds)

    def arm(self, limit: StepLimit, seconds: float) -> None:
        """Start a limit."""
        ends_at = self._loop.time() + seconds
        self._deadlines.arm(limit, ends_at)
        if self._timer is None or ends_at < self._timer.when():
            self._schedule()

    def disarm(self, limit: StepLimit) -> None:
        """Stop a limit."""
        self._deadlines.disarm(limit)

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        next_at = self._deadlines.next_at()
        self._timer = None
        if next_at is not None:
            self._timer = self._loop.call_at(min(next_at, self._loop.time() + ROUND), self._expire)

    def _expire(self) -> None:
        self._timer = None
        for limit in self._deadlines.expired(self._loop.time()):
            limit.expire()
        self._schedule()


class StepLimit:
    """The time limit of one call, used like `asyncio.timeout`: it cancels its task, and raises `TimeoutError`."""

    __slots__ = ("_canceled_before", "_limits", "_seconds", "_task", "expired")

    def __init__(self, limits: StepLimits, seconds: float | None) -> None:
        self._limits = limits
        self._seconds = seconds
        self._task: asyncio.Task[object] | None = None
        self._canceled_before = 0
        self.expired = False
        """Whether the call ran longer, and its task was canceled for that."""

    def expire(self) -> None:
        """Cancel the task."""
        if self._task is not None:
            self.expired = True
            self._task.cancel()

    def __enter__(self) -> Self:
        if self._seconds is not None:
            self._task = task = asyncio.current_task()
            self._canceled_before = 0 if task is None else task.cancelling()
            self._limits.arm(self, self._seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is None:
            return
        if not self.expired:
            self._limits.disarm(self)
        elif self._task.uncancel() <= self._canceled_before and kind is asyncio.CancelledError:
            raise TimeoutError from error  # the task was not canceled by others
