"""The archive duty: what ended longer ago than the retention leaves the working tables, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

from windlass import loggers
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

MICROSECONDS = 1_000_000
FEWEST, MOST = 10, 500
"""Jobs in a batch."""
ENOUGH_BYTES = 2_000_000
"""What a batch may carry: beyond that the next one is smaller."""


def feature(settings: JobsSettings, *, ids_tell_time: bool) -> Feature:
    """The archive, as a feature of an application."""

    def duties(tools: NodeTools) -> Sequence[ArchiveDuty]:
        lease = tools.lease(ARCHIVE, Every(settings.archive_interval))
        retention, errors = settings.retention, tools.errors
        return (ArchiveDuty(tools.database, lease, retention, errors, ids_tell_time=ids_tell_time),)

    return Feature("archive", duties=duties)


class ArchiveDuty(Duty):
    """One pass walks along the ids of ended jobs, from the oldest to those that cannot be old enough."""

    def __init__(
        self,
        database: Database,
        lease: LeaseHolder,
        retention: float,
        errors: ErrorHandling,
        *,
        ids_tell_time: bool = True,
    ) -> None:
        super().__init__("archive", lease, errors)
        self._database = database
        self._lease = lease
        self._age_us = int(retention * MICROSECONDS)
        self._ids_tell_time = ids_tell_time
        self._size = FEWEST
        self._after = archive.FIRST_ID
        self._moved = 0

    def begin(self) -> None:
        """From the oldest on: jobs may have ended lately that were made long ago."""
        self._after = archive.FIRST_ID
        self._moved = 0

    async def batch(self) -> bool:
        """Look for old jobs without any lock, and move them under the lease, where each is looked at again."""
        found = await self._database.aread(
            archive.old_jobs, self._age_us, self._after, self._size, ids_tell_time=self._ids_tell_time
        )
        moved = await self._lease.run(archive.move, found.ids, self._age_us)
        reached("archive.after_commit", lambda: moved.jobs > 0)
        self._moved += moved.jobs
        self._size = next_size(self._size, moved)
        if found.next_after is None:
            if self._moved:
                logger.info("%d jobs were moved to the archive", self._moved)
            return False
        self._after = found.next_after
        return True


def next_size(size: int, moved: archive.Moved) -> int:
    """How many jobs to move next: more as long as they are small, fewer when their payloads are large."""
    if moved.size > ENOUGH_BYTES:
        return max(size // 2, FEWEST)
    return min(size * 2, MOST) if moved.size * 2 <= ENOUGH_BYTES else size
