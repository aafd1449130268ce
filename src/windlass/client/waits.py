"""Waiting for a job inside a job: a warning if all slots of the worker are taken."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from uuid import UUID

from windlass import loggers
from windlass.context import JobContext
from windlass.domain.job import Outcome

logger = loggers.logger("windlass.job")

SECOND_LOOK = 1.0
"""Seconds after which a job that waits looks again whether its worker has filled up."""
_warned: deque[tuple[UUID, int]] = deque(maxlen=1000)
"""Attempts that were warned of, the latest ones."""


class JobWait:
    """The wait of one job, inside its body, for another."""

    def __init__(self, context: JobContext, awaited: Outcome, slots_taken: Callable[[], int | None]) -> None:
        self._context = context
        self._awaited = awaited
        self._slots_taken = slots_taken

    def result(self, future: Future[Outcome], limit: float | None) -> Outcome:
        """Wait; warn at once or a little later, if the worker is full."""
        self._warn_if_full()
        if limit is not None and limit <= SECOND_LOOK:
            return future.result(limit)
        try:
            return future.result(SECOND_LOOK)
        except TimeoutError:
            self._warn_if_full()
        return future.result(None if limit is None else limit - SECOND_LOOK)

    async def aresult(self, future: Future[Outcome], limit: float | None) -> Outcome:
        """Async twin of `result`."""
        self._warn_if_full()
        second_look = asyncio.get_running_loop().call_later(SECOND_LOOK, self._warn_if_full)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), limit)
        finally:
            second_look.cancel()

    def _warn_if_full(self) -> None:
        """Once per attempt: neither may ever go on, where the other could only run on this worker."""
        slots, attempt = self._slots_taken(), (self._context.job_id, self._context.fence)
        if slots is None or attempt in _warned:
            return
        _warned.append(attempt)
        logger.warning(
            "job %s (%s) waits for job %s (%s) while all %d slots of its worker are taken: if no other worker runs it, "
            "both wait until the timeout; use on_success=, or more concurrency",
            *(self._context.job_id, self._context.target, self._awaited.job_id, self._awaited.target, slots),
        )
