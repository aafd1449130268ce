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

    async def wait(self) -> None:
        """Wait until all are judged."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def cut_off(self, timeout: float, forced: asyncio.Event) -> None:
        """Wait up to `timeout`, or until `forced` is set; then end the rest, whose branches are judged later."""
        if not self._tasks:
            return
        judged = asyncio.ensure_future(asyncio.wait(list(self._tasks.values()), timeout=timeout))
        force = asyncio.ensure_future(forced.wait())
        await asyncio.wait({judged, force}, return_when=asyncio.FIRST_COMPLETED)
        for waiter in (judged, force):
            waiter.cancel()
        for task in self._tasks.values():
            task.cancel()
        await self.wait()
