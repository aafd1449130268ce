"""Large payloads: read when a slot is about to take their job, many at once. Here it shows whether there is a job."""

from __future__ import annotations

from collections.abc import Sequence

from windlass import loggers
from windlass.engine.attempt import Attempt
from windlass.engine.damage import is_id, pause_damaged
from windlass.stores.database import Database
from windlass.stores.plans import damaged, jobs

logger = loggers.logger("windlass.slots")


async def load(database: Database, batch: Sequence[Attempt]) -> list[Attempt]:
    """Put payloads to their claims, which may have been handed back meanwhile; answers those that have none.

    What has none is no job, and nobody could run or fail it: its row is taken out of the way.
    """
    nameless = [attempt for attempt in batch if not is_id(attempt.claim.job_id)]
    wanted = [attempt for attempt in batch if attempt not in nameless]
    found = await database.aread(jobs.load, [attempt.claim.job_id for attempt in wanted]) if wanted else {}
    for attempt in wanted:
        attempt.payload = found.get(attempt.claim.job_id)
    gone = [attempt for attempt in wanted if attempt.payload is None]
    for attempt in gone:
        await database.arun(damaged.remove_orphan, attempt.claim.job_id, attempt.claim.fence)
        logger.error(
            "job %s had a row in windlass_hot and none in windlass_job; that row was removed, there is nothing to run",
            attempt.claim.job_id,
        )
    for attempt in nameless:
        await pause_damaged(database, attempt.claim, "its id is no UUID")
    return gone + nameless
