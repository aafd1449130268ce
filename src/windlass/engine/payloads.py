"""Large payloads: read when a slot is about to take their job, many at once."""

from __future__ import annotations

from collections.abc import Sequence

from windlass import saying
from windlass.engine.attempt import Attempt
from windlass.stores import jobs
from windlass.stores.database import Database

logger = saying.logger("windlass.coordinator")


async def load(database: Database, batch: Sequence[Attempt]) -> list[Attempt]:
    """Put payloads to their claims, which may have been handed back meanwhile; answers those that have none."""
    found = await database.aread(jobs.load, [attempt.claim.job_id for attempt in batch])
    for attempt in batch:
        attempt.payload = found.get(attempt.claim.job_id)
    gone = [attempt for attempt in batch if attempt.payload is None]
    for attempt in gone:
        logger.error("job %s is claimed, but its row is gone; somebody deleted it by hand", attempt.claim.job_id)
    return gone
