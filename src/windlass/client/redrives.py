"""A re-drive: bounded batches, each in its own transaction, with pauses and a check of how the jobs fare."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final
from uuid import UUID

from windlass import loggers
from windlass.client import commits
from windlass.domain.clock import monotonic
from windlass.domain.dead_letter import Redrive
from windlass.domain.identity import new_job_id
from windlass.domain.job import Outcome
from windlass.domain.states import JobStatus
from windlass.errors import DuplicateBusinessKeyError, InvalidOptionError, JobStateError
from windlass.publisher import Publisher
from windlass.runtime.verbs import Verb, sleep
from windlass.stores.access import Access
from windlass.stores.ending import FollowUps
from windlass.stores.plans import reads, redrives, triage
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.stores.plans.moves import NotRevived
from windlass.stores.plans.triage import LetterFilters, Spot

logger = loggers.logger("windlass.dead_letters")

BATCH: Final = 100
"""Number of jobs that are re-driven in one transaction."""
MOST: Final = 100_000
LEAST_ENDED: Final = 20
"""Number of re-driven jobs that must have ended before their failures are judged."""
MOST_LOOKED_AT: Final = 1_000
STOP_AT: Final = 0.5
"""Default share of failures beyond which a re-drive stops."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to re-drive, and how."""

    filters: LetterFilters
    limit: int
    rate: float | None
    dry_run: bool
    stop_at: float | None
    """The share of failures beyond which it stops; None is `STOP_AT`."""
    note: str
    """Why it is done, for the audit log."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """The filters as they were given, for the audit log."""
    who: str = ""
    """Who requested it, for the audit log."""

    def __post_init__(self) -> None:
        limit: object = self.limit  # callers may not have respected its type
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST:
            raise InvalidOptionError(f"limit must be a whole number from 1 to {MOST:,}, got {self.limit!r}")
        if self.rate is not None and not (_is_number(self.rate) and self.rate > 0):
            raise InvalidOptionError(
                f"rate must be a number of jobs per second above 0, or None for no limit, got {self.rate!r}"
            )
        ratio = self.stop_at
        if ratio is not None and not (_is_number(ratio) and 0 <= ratio <= 1):
            raise InvalidOptionError(f"stop_at must be a share from 0 to 1, where 1 is never, got {ratio!r}")
        if not isinstance(self.note, str):
            raise InvalidOptionError(f"note must be a text for the audit log, got {self.note!r}")

    @property
    def ratio(self) -> float:
        """The share of failures beyond which it stops."""
        return STOP_AT if self.stop_at is None else self.stop_at

    @property
    def batch(self) -> int:
        """Jobs per transaction: with a rate, no more than a second's worth."""
        return BATCH if self.rate is None else max(1, min(BATCH, int(self.rate)))


class RedriveTotals:
    """What a re-drive has done so far."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.selected: list[str] = []
        self.known: set[str] = set()
        self.redriven: list[str] = []
        self.skipped: dict[UUID, str] = {}
        self.stopped = ""
        self.entry = AuditEntry(new_job_id(), order.who, "dead_letters.redrive", 0, self._detail())
        self._running: dict[str, None] = {}
        self._failed = self._succeeded = 0

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
        """Jobs whose outcome is not known yet, in order."""
        return list(self._running)[:MOST_LOOKED_AT]

    def look_at(self, outcomes: Sequence[Outcome]) -> bool:
        """Record outcomes; return True if too many jobs have failed again."""
        for outcome in outcomes:
            if outcome.status in (JobStatus.FAILED, JobStatus.SUCCEEDED, JobStatus.CANCELED):
                self._running.pop(outcome.job_id, None)
                self._failed += outcome.status is JobStatus.FAILED
                self._succeeded += outcome.status is JobStatus.SUCCEEDED
        ratio, ended = self._order.ratio, self._failed + self._succeeded
        if ended < LEAST_ENDED or self._failed / ended <= ratio:
            return False
        self.stopped = f"{self._failed} of the {ended} that have ended since failed again, more than {ratio:.0%}"
        logger.warning("stopped a re-drive after %d jobs: %s", len(self.redriven), self.stopped)
        return True

    def result(self) -> Redrive:
        """Return the result for users."""
        ids = self.selected if self._order.dry_run else self.redriven
        return Redrive(len(self.selected), len(self.redriven), tuple(map(UUID, ids)), dict(self.skipped), self.stopped)


def redrive(
    order: Order,
    access: Access,
    publisher: Publisher,
    follow_ups: FollowUps,
    on_progress: Callable[[Redrive], object] | None,
) -> Verb[Redrive]:
    """Select, re-drive, publish, wait and check, batch by batch.

    Jobs that fail again meanwhile are not selected again.
    """
    sums = RedriveTotals(order)
    spot: Spot | None = None
    now = yield from access.read(triage.now)
    filters = order.filters._replace(before=min(now + 1, order.filters.before or now + 1))
    while sums.left > 0:
        began, size = monotonic(), min(order.batch, sums.left)
        if order.dry_run:
            batch = yield from access.read(redrives.select, filters, spot, size, sums.known)
        else:
            bounds = (filters, spot, size, sums.known, sums.entry)
            batch = yield from _next_batch(access, publisher, follow_ups, bounds)
        revived = yield from commits.publish(access, publisher, batch.moved, follow_ups)
        sums.add(batch)
        spot = batch.next_spot
        if on_progress is not None and batch.selected:
            on_progress(sums.result())
        if spot is None or not sums.left:
            break
        if order.rate is not None and revived:
            yield from sleep(max(0.0, began + revived / order.rate - monotonic()))
        if sums.running and order.ratio < 1:
            outcomes = yield from access.read(reads.outcomes, sums.running)
            if sums.look_at(outcomes):
                break
    return sums.result()


_Bounds = tuple[LetterFilters, Spot | None, int, set[str], AuditEntry]


def _next_batch(
    access: Access, publisher: Publisher, follow_ups: FollowUps, bounds: _Bounds
) -> Verb[redrives.RedriveBatch]:
    """Re-drive the next batch; a smaller one while a key of a job that would be revived with it is held."""
    while True:
        filters, spot, size, known, entry = bounds
        try:
            return (yield from commits.revive(access, publisher, redrives.redrive, *bounds, follow_ups))
        except DuplicateBusinessKeyError as error:
            if size == 1:
                batch = yield from access.read(redrives.select, filters, spot, size, known)
                why = f"job {error.holder} holds the business key {error.key!r} of a job that follows it"
                return batch._replace(kept={job: JobStateError(UUID(job), why) for job in batch.selected})
            bounds = (filters, spot, size // 2, known, entry)


def _reason(error: NotRevived) -> str:
    if isinstance(error, JobStateError):
        return error.why
    return f"job {error.holder} holds its business key {error.key!r}"


def process_owner() -> str:
    """Return the user of this process, for the audit log."""
    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container's user need not have a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
