"""What a job's body can know of itself: `JobContext.current()`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import timedelta
from typing import Any
from uuid import UUID

from windlass.domain.durations import seconds
from windlass.domain.job import Claim, Payload
from windlass.domain.keys import effect_key
from windlass.domain.tags import tags_of
from windlass.errors import ConfigurationError, WindlassError

__all__ = ["JobCancelled", "JobContext", "Snooze"]

current_context: ContextVar[JobContext | None] = ContextVar("windlass_job_context", default=None)
"""Set once per attempt, in its own task; log records read it too."""
_log = logging.getLogger("windlass.job")


class Snooze(BaseException):
    """Leaves the body and puts the job back, due after a delay.

    A BaseException, so that `except Exception` lets it pass.
    """

    def __init__(self, delay: float | timedelta) -> None:
        self.delay = seconds(delay, "delay")
        super().__init__(f"snoozed for {self.delay:g} s")


class JobCancelled(WindlassError):  # noqa: N818 - the body's own way out, raised by `check`
    """Raised by `check` once nobody waits for this attempt's result any more.

    It was cancelled, timed out or drained.
    """


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

    __slots__ = ("_claim", "_payload", "_stopped", "node")

    def __init__(self, claim: Claim, payload: Payload, node: str) -> None:
        self._claim = claim
        self._payload = payload
        self._stopped = False
        self.node = node
        """Id of the node it runs on."""

    @classmethod
    def current(cls) -> JobContext:
        """The context of the job this code runs in; an error outside of jobs."""
        context = current_context.get()
        if context is None:
            raise ConfigurationError(
                "JobContext.current() was called outside of a job; only a running job's body has one"
            )
        return context

    @property
    def job_id(self) -> UUID:
        """The job's id."""
        return UUID(self._claim.job_id)

    @property
    def attempt(self) -> int:
        """Number of this attempt; the first is 1."""
        return self._claim.attempts + 1

    @property
    def fence(self) -> int:
        """Grows with every claim of the job: lets your own store refuse a write that comes too late."""
        return self._claim.fence

    @property
    def target(self) -> str:
        """The stored name of the function."""
        return self._claim.target

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._claim.queue

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags it was enqueued with."""
        return tags_of(self._payload.tags)

    @property
    def correlation_id(self) -> str | None:
        """What ties it to others."""
        return self._payload.correlation_id

    @property
    def params(self) -> Mapping[str, Any]:
        """The `params` the job was enqueued with."""
        return json.loads(self._payload.params) if self._payload.params else {}

    @property
    def log(self) -> logging.Logger:
        """A logger whose records carry job id, node id and attempt."""
        return _log

    @property
    def effect_key(self) -> str:
        """The same for every attempt of this job: hand it to whatever must not happen twice."""
        return effect_key(self._claim.job_id)

    @property
    def cancelled(self) -> bool:
        """Whether this attempt should end: cancelled, timed out or drained."""
        return self._stopped

    def cancel(self) -> None:
        """Ask the body to end; it sees it in `cancelled` and `check`."""
        self._stopped = True

    def check(self) -> None:
        """Leave the body if the attempt should end."""
        if self._stopped:
            raise JobCancelled(f"job {self.job_id} should end: it was cancelled, timed out, or its node drains")

    def snooze(self, delay: float | timedelta) -> None:
        """Leave the body and run the job again after `delay`, without spending an attempt."""
        raise Snooze(delay)
