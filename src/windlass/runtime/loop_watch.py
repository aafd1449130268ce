"""Warnings about a blocked event loop: a coroutine that calls blocking code holds up all others."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.domain.loop_block import Block, LoopBlocks
from windlass.runtime.thread_service import ThreadService

logger = loggers.logger("windlass.loop")

CHECKS = 4
"""Number of checks within the time after which a loop counts as blocked."""


class Culprit(NamedTuple):
    """What ran on a loop while it was blocked."""

    name: str
    """The target of a job; empty for other code."""
    job_id: str


class LoopWatch(ThreadService):
    """Pings a busy loop from a thread, and records what runs on it if no answer comes.

    `job_of` returns the job that a task belongs to; `busy` returns whether anything runs that could block the loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threshold: float,
        busy: Callable[[], bool],
        job_of: Callable[[asyncio.Task[Any]], Culprit | None],
    ) -> None:
        super().__init__("loop watch")
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._interval = threshold / CHECKS
        self._busy = busy
        self._job_of = job_of
        self._location = ""
        self._answered_at: float | None = None
        self.blocks: LoopBlocks[Culprit] = LoopBlocks(threshold)

    def tick(self) -> float | None:
        """Check the loop once."""
        now, answered = monotonic(), self._answered_at
        if self.blocks.waits and answered is None:
            self._report(self.blocks.still_waiting(now, self._culprit()))
            return self._interval
        if answered is not None:
            self._answered_at = None
            self._report(self.blocks.answered(answered))
        if self._busy():
            self._ask(now)
        return self._interval

    def _ask(self, now: float) -> None:
        self.blocks.asked(now)
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # the loop is closed
            self.stop()

    def _answer(self) -> None:
        """Record when the loop answered. Runs on the loop."""
        self._answered_at = monotonic()

    def _culprit(self) -> Culprit | None:
        """Return the job that runs on the loop, and keep where it stands."""
        task = asyncio.current_task(self._loop)
        culprit = None if task is None else self._job_of(task)
        frame = sys._current_frames().get(self._loop_thread)
        location = None if frame is None else _location(frame)
        # Once a culprit is known, what other code does until the loop answers says nothing about it.
        concerns = not self.blocks.noticed or (culprit is not None and self.blocks.culprit in (None, culprit))
        if location is not None and concerns and asyncio.current_task(self._loop) is task:
            self._location = location
        return culprit

    def _report(self, block: Block[Culprit] | None) -> None:
        if block is None:
            return
        culprit = block.culprit
        what = "code outside of jobs" if culprit is None else f"{culprit.name} (job {culprit.job_id})"
        logger.warning(
            "event loop %s for %.1f s by %s at %s: all other jobs on it waited; "
            "use await, asyncio.to_thread, or a plain function",
            *("blocked" if block.over else "still blocked", block.seconds, what, self._location),
        )


def _location(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
