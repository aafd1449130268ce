"""The running job as its body sees it: `JobContext.current()`."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from windlass import loggers
from windlass.domain.durations import seconds
from windlass.domain.interaction_context import InteractionContext
from windlass.domain.job import Claim, Payload
from windlass.domain.keys import effect_key
from windlass.domain.progress import amount
from windlass.domain.signal import Signal
from windlass.domain.tags import tags_of
from windlass.domain.transition_keys import transition_key
from windlass.errors import ConfigurationError, InvalidOptionError, StaleClaimError, StopJob

__all__ = ["JobContext", "Snooze"]

current_context: ContextVar[JobContext | None] = ContextVar("windlass_job_context", default=None)
"""Set once per attempt, in its own task; log records read it too."""
JOB_LOGGER = "windlass.job"
KEPT_FROM = logging.INFO
"""The level from which log lines are kept with a job."""
_opening = threading.RLock()


class Report(Protocol):
    """Takes what one attempt reports. Called from any thread; returns at once."""

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Report the attempt's progress."""

    def line(self, record: logging.LogRecord) -> None:
        """Keep a log record of the attempt."""


class Reporter(Protocol):
    """Creates reports for a node's attempts."""

    def keeps(self, logger: str) -> bool:
        """Return whether lines of a logger are kept."""
        ...

    def open(self, claim: Claim, received: float) -> Report:
        """Return the report of an attempt; most attempts never need one."""
        ...


class _JobLogger(logging.Logger):
    """The logger `windlass.job` for bodies: records that are kept are created even if no handler wants them.

    The program's handlers get what they would get anyway, by the level of the real logger.
    """

    def __init__(self, real: logging.Logger) -> None:
        super().__init__(real.name)
        self.parent = self._real = real
        self.handlers, self.filters = real.handlers, real.filters  # the same lists, so that additions affect both

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - logging's own name
        if self._real.isEnabledFor(level):
            return True
        context = current_context.get()
        return level >= KEPT_FROM and context is not None and context.keeps(self.name)

    def handle(self, record: logging.LogRecord) -> None:
        if self._real.isEnabledFor(record.levelno):
            self._real.handle(record)

    def setLevel(self, level: int | str) -> None:  # noqa: N802 - logging's own name
        self._real.setLevel(level)


_log = _JobLogger(loggers.logger(JOB_LOGGER))


class Snooze(BaseException):
    """Ends the body and releases the job, due after a delay.

    A BaseException, so that `except Exception` lets it pass.
    """

    def __init__(self, delay: float | timedelta) -> None:
        self.delay = seconds(delay, "delay")
        super().__init__(f"snoozed for {self.delay:g} s")


class JobContext(InteractionContext):
    """The running attempt, as its body sees it.

    ```python
    @app.job
    def export(rows: int) -> None:
        ctx = JobContext.current()
        for row in range(rows):
            ctx.check()  # raises StopJob once the job was canceled
            write(row, key=ctx.effect_key)
    ```
    """

    __slots__ = (
        *("_claim", "_claim_lost", "_payload", "_received", "_report", "_reporter", "_stopped", "draining"),
        *("node", "over", "signal", "tools"),
    )

    def __init__(
        self,
        claim: Claim,
        payload: Payload,
        node: str,
        reporter: Reporter | None = None,
        received: float = 0.0,
        tools: object = None,
    ) -> None:
        self._claim = claim
        self._payload = payload
        self._reporter = reporter
        self._received = received  # when the claim arrived, on the monotonic clock
        self._report: Report | None = None
        self._stopped = False
        self._claim_lost = False
        self.node = node
        """Id of the node that runs it."""
        self.over = False
        """Whether the attempt has ended; threads that it started may still run."""
        self.signal: Signal | None = None
        """The signal that released the job; None if it awaited none."""
        self.draining = False
        """Whether the node drains: a body that can go on elsewhere should end soon."""
        self.tools = tools
        """What the node provides to bodies of features (`windlass.feature.BodyTools`)."""

    @classmethod
    def current(cls) -> JobContext:
        """Return the context of the job this code runs in; raise an error outside of jobs."""
        context = current_context.get()
        if context is None:
            raise ConfigurationError(
                "JobContext.current() was called outside of a job; only a running job's body has one"
            )
        return context

    @property
    def claim(self) -> Claim:
        """The claim of this attempt."""
        return self._claim

    @property
    def received(self) -> float:
        """When the claim arrived, on this process's monotonic clock."""
        return self._received

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
        """The queue it was claimed from."""
        return self._claim.queue

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags it was enqueued with."""
        return tags_of(self._payload.tags)

    @property
    def correlation_id(self) -> str | None:
        """The id that it shares with related jobs."""
        return self._payload.correlation_id

    @property
    def params(self) -> Mapping[str, Any]:
        """The `params` the job was enqueued with."""
        return json.loads(self._payload.params) if self._payload.params else {}

    @property
    def log(self) -> logging.Logger:
        """A logger whose records carry job id, node id and attempt; from INFO on they are kept with the job."""
        return _log

    @property
    def effect_key(self) -> str:
        """The same for every attempt of this job: pass it to services that must not act twice."""
        return effect_key(self._claim.job_id)

    @property
    def transition_key(self) -> str:
        """Different for every attempt: `jobId:0:attempt`, or that of a pipeline's step and item."""
        return transition_key(self._claim.job_id, 0, self.attempt, "")

    def reject(self, item: Any, error: BaseException | str) -> None:
        """Record an item as rejected, in a step of a pipeline that takes or gives many; the step continues."""
        del item, error
        raise ConfigurationError("ctx.reject() is for steps that take or give many items; others raise RejectItem")

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report the job's progress: `ctx.progress(3, 10, "resizing")`; shown in `app.get(id).progress`.

        Never blocks, so a tight loop may call it in every round, from any thread: the latest report counts, and is
        written a few times a second. Raises `StaleClaimError` if the claim was lost.
        """
        if not isinstance(message, str):
            raise InvalidOptionError(
                f"message of a progress must be a text, got {message!r} ({type(message).__name__}); "
                'e.g. ctx.progress(3, 10, "resizing")'
            )
        done, total = amount(done, "done"), None if total is None else amount(total, "total")
        if self._claim_lost:
            raise self._stale()
        report = self._report or self._opened()
        if report is not None:
            report.progress(done, total, message)

    def keeps(self, logger: str) -> bool:
        """Return whether lines of a logger are kept with this job."""
        return self._reporter is not None and self._reporter.keeps(logger)

    def keep(self, record: logging.LogRecord) -> None:
        """Keep a log record with this job, if records of its logger and level are kept."""
        if record.levelno >= KEPT_FROM and self.keeps(record.name):
            report = self._report or self._opened()
            if report is not None:
                report.line(record)

    @property
    def reported(self) -> bool:
        """Whether this attempt has reported anything."""
        return self._report is not None

    def _opened(self) -> Report | None:
        if self._reporter is None:
            return None
        with _opening:  # two threads of one body may report at the same time
            self._report = self._report or self._reporter.open(self._claim, self._received)
        return self._report

    @property
    def canceled(self) -> bool:
        """Whether this attempt should end: its job was canceled or timed out, or its node drains."""
        return self._stopped

    @property
    def cancelled(self) -> bool:  # J2.2 names it so; `canceled` is what the documentation shows
        """Another spelling of `canceled`."""
        return self._stopped

    def cancel(self) -> None:
        """Ask the body to end, by `canceled` and `check`."""
        self._stopped = True

    def drain(self) -> None:
        """Ask a body that can continue elsewhere to end soon: its node drains."""
        self.draining = True

    def lose_claim(self) -> None:
        """Mark the claim as lost: the body learns of it in `check` and `progress`."""
        self._claim_lost = self._stopped = True

    def _stale(self) -> StaleClaimError:
        return StaleClaimError(
            f"job {self.job_id}: the claim of this attempt (fence {self.fence}) was lost, since its node was given up; "
            "the job runs elsewhere, and nothing of this attempt counts"
        )

    def check(self) -> None:
        """Raise `StopJob` if the attempt should end, or `StaleClaimError` if the claim was lost."""
        if self._claim_lost:
            raise self._stale()
        if self._stopped:
            raise StopJob(f"job {self.job_id} should end: it was canceled, timed out, or its node drains")

    def snooze(self, delay: float | timedelta) -> None:
        """End the body and run the job again after `delay`, without spending an attempt."""
        raise Snooze(delay)
