"""What a job's body can know of itself: `JobContext.current()`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import timedelta
from typing import Any
from uuid import UUID

from windlass.domain.durations import seconds
from windlass.errors import ConfigurationError, WindlassError

__all__ = ["JobCancelled", "JobContext", "Snooze"]

_current: ContextVar[JobContext] = ContextVar("windlass_job_context")
_log = logging.getLogger("windlass.job")


class Snooze(BaseException):  # noqa: N818 - no error: what `snooze` raises to leave the body
    """Leaves the body and puts the job back, due after a delay. A BaseException, so that `except Exception` lets it pass."""

    def __init__(self, delay: float) -> None:
        super().__init__(f"snoozed for {delay:g} s")
        self.delay = delay


class JobCancelled(WindlassError):  # noqa: N818 - the body's own way out, raised by `check`
    """Raised by `check` once nobody waits for this attempt's result any more: it was cancelled, timed out or drained."""


class JobContext:
    """The running attempt, as its body sees it.

    ```python
    @app.job
    def export(rows: int) -> None:
        ctx = JobContext.current()
        for row in range(rows):
            ctx.check()  # leaves here once the job was cancelled
            write(row, key=ctx.effect_key)
    ```
    """

    __slots__ = ("_cancelled", "_params", "attempt", "correlation_id", "fence", "job_id", "node", "queue", "tags", "target")

    def __init__(
        self,
        job_id: UUID,
        attempt: int,
        fence: int,
        *,
        node: str = "-",
        target: str = "",
        queue: str = "",
        params: Mapping[str, Any] | None = None,
        tags: tuple[str, ...] = (),
        correlation_id: str | None = None,
    ) -> None:
        self.job_id = job_id
        self.attempt = attempt
        self.fence = fence
        self.node = node
        self.target = target
        self.queue = queue
        self.tags = tags
        self.correlation_id = correlation_id
        self._params = params
        self._cancelled = False

    @classmethod
    def current(cls) -> JobContext:
        """The context of the job this code runs in; an error outside of jobs."""
        context = _current.get(None)
        if context is None:
            raise ConfigurationError("JobContext.current() was called outside of a job; only a running job's body has one")
        return context

    def bind(self) -> None:
        """Make this the current context; it ends with the task or thread it was bound in."""
        _current.set(self)

    @property
    def params(self) -> Mapping[str, Any]:
        """The `params` the job was enqueued with."""
        return self._params or {}

    @property
    def log(self) -> logging.Logger:
        """A logger whose records carry job id, node id and attempt."""
        return _log

    @property
    def effect_key(self) -> str:
        """The same for every attempt of this job: hand it to whatever must not happen twice."""
        return str(self.job_id)

    @property
    def cancelled(self) -> bool:
        """Whether this attempt should end: cancelled, timed out or drained."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the body to end; it sees it in `cancelled` and `check`."""
        self._cancelled = True

    def check(self) -> None:
        """Leave the body if the attempt should end."""
        if self._cancelled:
            raise JobCancelled(f"job {self.job_id} should end: it was cancelled, timed out, or its node drains")

    def snooze(self, delay: float | timedelta) -> None:
        """Leave the body and run the job again after `delay`, without spending an attempt."""
        raise Snooze(seconds(delay, "delay"))
