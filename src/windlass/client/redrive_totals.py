"""What a re-drive has done so far, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from windlass import loggers
from windlass.client.redrive_order import Order
from windlass.domain.dead_letter import JOB, Redrive
from windlass.domain.identity import new_job_id
from windlass.domain.states import JobStatus
from windlass.errors import JobStateError, SerializationError
from windlass.stores.plans import redrives
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.stores.plans.moves import NotRevived
from windlass.stores.plans.redriven_jobs import RedrivenJobs, RetriedJob
from windlass.submission.stored_options import from_text

logger = loggers.logger("windlass.dead_letters")

LEAST_ENDED: Final = 20
"""Number of re-driven jobs that must have ended before their failures are judged."""
MOST_LOOKED_AT: Final = 1_000
_ENDED: Final = (JobStatus.FAILED, JobStatus.SUCCEEDED, JobStatus.CANCELED)

LimitOf = Callable[[str, str, int], int | None]
"""The retry limit of a step, by pipeline, version and index; None if it is not known here."""


class RedriveTotals:
    """What a re-drive has done so far."""

    def __init__(self, order: Order, limit_of: LimitOf) -> None:
        self._order = order
        self._limit_of = limit_of
        self.selected: list[str] = []
        self.known: set[str] = set()
        self.redriven: list[str] = []
        self.skipped: dict[UUID, str] = {}
        self.stopped = ""
        self.entry = AuditEntry(new_job_id(), order.principal, "dead_letters.redrive", 0, self._detail())
        self._running: dict[str, None] = {}
        self._failed = self._succeeded = 0
        self._saturation: float | None = None
        self.began = 0
        """When it began, by the store's clock."""
        self._suppressed_before = self._suppressed = 0

    @property
    def counts_handoffs(self) -> bool:
        """Whether anything that it starts over may publish."""
        return not self._order.dry_run and self._order.filters.kind != JOB

    def begin(self, now: int, suppressed: int) -> None:
        """Record how many hand-offs had been suppressed in this minute before."""
        self.began, self._suppressed_before = now, suppressed

    def suppressed_until(self, suppressed: int) -> None:
        """Record how many have been suppressed by now."""
        self._suppressed = max(suppressed - self._suppressed_before, 0)

    def _detail(self) -> dict[str, Any]:
        order = self._order
        return {"note": order.note, "filters": dict(order.asked), "limit": order.limit, "rate": order.rate}

    def add(self, batch: redrives.RedriveBatch) -> None:
        """Add a batch that was committed, or only selected."""
        self.selected += batch.selected
        self.known.update(batch.selected)
        moved = [job.job_id for job in batch.moved.ended]
        self.redriven += moved
        self._running.update(dict.fromkeys(moved))
        self.entry = redrives.counted(self.entry, batch)
        for job_id, error in batch.kept.items():
            self.skipped[UUID(job_id)] = why = _reason(error)
            logger.warning("dead letter %s was not re-driven: %s", job_id, why)

    @property
    def left(self) -> int:
        """How many more may be selected."""
        return self._order.limit - len(self.selected)

    @property
    def running(self) -> list[str]:
        """Jobs whose outcome is not known yet: those that were looked at longest ago."""
        return list(self._running)[:MOST_LOOKED_AT]

    def look_at(self, looked: Sequence[str], found: RedrivenJobs) -> None:
        """Record what became of jobs."""
        for job_id in looked:
            status = found.statuses.get(job_id)
            del self._running[job_id]
            self._failed += status == JobStatus.FAILED
            self._succeeded += status == JobStatus.SUCCEEDED
            if status is not None and status not in _ENDED:
                self._running[job_id] = None  # behind those that were not looked at
        shares = [share for job in found.jobs if (share := _share(job)) is not None]
        for step in found.steps:
            limit = self._limit_of(step.pipeline, step.version, step.step)
            if limit:
                shares.append(min((step.attempt - 1) / limit, 1.0))
        self._saturation = sum(shares) / len(shares) if shares else None

    def judge(self) -> bool:
        """Return True if too many jobs have failed again."""
        ratio, ended = self._order.ratio, self._failed + self._succeeded
        if ended < LEAST_ENDED or self._failed / ended <= ratio:
            return False
        self.stopped = f"{self._failed} of the {ended} that have ended since failed again, more than {ratio:.0%}"
        logger.warning("stopped a re-drive after %d jobs: %s", len(self.redriven), self.stopped)
        return True

    def result(self) -> Redrive:
        """Return the result for users."""
        ids = self.selected if self._order.dry_run else self.redriven
        return Redrive(
            len(self.selected),
            len(self.redriven),
            tuple(map(UUID, ids)),
            dict(self.skipped),
            self.stopped,
            succeeded=self._succeeded,
            failed_again=self._failed,
            unfinished=len(self._running),
            suppressed=self._suppressed,
            saturation=self._saturation,
        )


def _share(job: RetriedJob) -> float | None:
    """Return the share of its retries that a job has used, the one that it waits for included."""
    try:
        limit = 0 if job.options is None else from_text(job.options).max_retries
    except SerializationError:
        return None
    return min(job.attempts / limit, 1.0) if limit else None


def _reason(error: NotRevived) -> str:
    if isinstance(error, JobStateError):
        return error.why
    return f"job {error.holder} holds its business key {error.key!r}"
