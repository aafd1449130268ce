"""Attempts whose verdict is made and whose branches are being judged: they are written when that is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial

from windlass import loggers
from windlass.engine.attempt import Attempt

logger = loggers.logger("windlass.completer")


class Judgings:
    """One task for each of these attempts. Used on the loop only."""

    def __init__(self, over: Callable[[Attempt], None]) -> None:
        self._over = over
        self._tasks: dict[Attempt, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self._tasks)

    def begin(self, attempt: Attempt, judging: Coroutine[object, object, None]) -> None:
        """Judge the branches of an attempt, then pass it on, whatever came of that."""
        task = asyncio.get_running_loop().create_task(judging)
        self._tasks[attempt] = task
        task.add_done_callback(partial(self._judged, attempt))

    def _judged(self, attempt: Attempt, task: asyncio.Task[None]) -> None:
        del self._tasks[attempt]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error(
                "job %s: its branches could not be judged (%s); each is decided when it begins",
                attempt.claim.job_id,
                type(error).__name__,
            )
        self._over(attempt)

    async def wait(self, timeout: float | None = None) -> None:
        """Wait until all are judged; those that are not in time are cut off, and their branches judged later."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=timeout)
        while self._tasks and timeout is not None:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.wait(list(self._tasks.values()))
            await asyncio.sleep(0)  # for the callbacks
