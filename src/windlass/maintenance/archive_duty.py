"""The archive duty: moves jobs that ended longer ago than the retention out of the working tables, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

from windlass import loggers
from windlass.domain.clock import MICROSECONDS
from windlass.domain.identity import FIRST_ID
from windlass.domain.rhythm import Every
from windlass.feature import Feature, NodeTools
from windlass.runtime.duty import Duty
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.settings import JobsSettings
from windlass.stores.database import Database
from windlass.stores.lease_holder import LeaseHolder
from windlass.stores.plans import archive
from windlass.stores.plans.leases import ARCHIVE

logger = loggers.logger("windlass.archive")

FEWEST, MOST = 10, 500
"""Jobs in a batch."""
ENOUGH_BYTES = 2_000_000
"""Size of a batch beyond which the next one is smaller."""


def feature(settings: JobsSettings, *, ids_have_times: bool) -> Feature:
    """Return the archive as a feature of an application."""

    def duties(tools: NodeTools) -> Sequence[ArchiveDuty]:
        lease = tools.lease(ARCHIVE, Every(settings.archive_interval))
        retention, errors = settings.retention, tools.errors
        return (ArchiveDuty(tools.database, lease, retention, errors, ids_have_times=ids_have_times),)

    return Feature("archive", duties=duties)


class ArchiveDuty(Duty):
    """Walks along the ids of ended jobs in one pass, from the oldest to those that cannot be old enough."""

    def __init__(
        self,
        database: Database,
        lease: LeaseHolder,
        retention: float,
        errors: ErrorHandling,
        *,
        ids_have_times: bool = True,
    ) -> None:
        super().__init__("archive", lease, errors)
        self._database = database
        self._lease = lease
        self._age_us = int(retention * MICROSECONDS)
        self._ids_have_times = ids_have_times
        self._size = FEWEST
        self._after = FIRST_ID
        self._moved = 0

    def begin(self) -> None:
        """Start from the oldest: jobs created long ago may have ended recently."""
        self._after = FIRST_ID
        self._moved = 0

    async def batch(self) -> bool:
        """Find old jobs without locks, and move them under the lease, where each is checked again."""
        found = await self._database.aread(
            archive.old_jobs, self._age_us, self._after, self._size, ids_have_times=self._ids_have_times
        )
        moved = await self._lease.run(archive.move, found.ids, self._age_us)
        reached("archive.after_commit", lambda: moved.jobs > 0)
        self._moved += moved.jobs
        self._size = next_size(self._size, moved)
        if found.next_after is None:
            if self._moved:
                logger.info("moved %d jobs to the archive", self._moved)
            return False
        self._after = found.next_after
        return True


def next_size(size: int, moved: archive.Moved) -> int:
    """Return how many jobs to move next: more while they are small, fewer when their payloads are large."""
    if moved.size > ENOUGH_BYTES:
        return max(size // 2, FEWEST)
    return min(size * 2, MOST) if moved.size * 2 <= ENOUGH_BYTES else size
