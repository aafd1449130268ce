"""Claims that wait for a slot, in their order.

The first of them may be prepared for a thread, which starts the next one as soon as it has finished another body. A
thread that had to wait for the loop would be idle as long as the loop is busy: for bodies of a few milliseconds that is
a quarter of the time. Large payloads are read when a slot is about to take their job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from windlass import loggers
from windlass.engine.attempt import Attempt
from windlass.engine.damage import is_id, pause_damaged
from windlass.stores.database import Database
from windlass.stores.plans import damaged, jobs

logger = loggers.logger("windlass.slots")


class WaitingClaims:
    """Claims without a slot. Used on the loop only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.ready: deque[Attempt] = deque()
        """Claims with a turn for a thread: each may start at any moment. They precede all others."""
        self.others: deque[Attempt] = deque()

    def __len__(self) -> int:
        return len(self.ready) + len(self.others)

    def __iter__(self) -> Iterator[Attempt]:
        return chain(self.ready, self.others)

    def begin(self) -> Attempt:
        """Remove and return the first that is ready: a slot is free, so its body starts now, if it has not."""
        attempt = self.ready.popleft()
        if attempt.turn is not None:
            attempt.turn.begin()
        return attempt

    def withdraw(self, attempt: Attempt) -> bool:
        """Remove an attempt whose body must not start; return False if it has started, or does not wait."""
        if attempt in self.others:
            self.others.remove(attempt)
            return True
        if attempt not in self.ready or attempt.turn is None or not attempt.turn.withdraw():
            return False
        self.ready.remove(attempt)
        if attempt.task is not None:
            attempt.task.cancel()
        return True

    def withdraw_ready(self, before: float = float("inf")) -> list[Attempt]:
        """Remove and return all ready claims that arrived before then and have not started."""
        return [attempt for attempt in list(self.ready) if attempt.received < before and self.withdraw(attempt)]

    async def load(self, first: int) -> bool:
        """Read the large payloads of the first so many; return whether there were any to read."""
        batch = [attempt for attempt in islice(self.others, first) if attempt.payload is None]
        for missing in await _load(self._database, batch) if batch else ():
            self.withdraw(missing)
        return bool(batch)


async def _load(database: Database, batch: Sequence[Attempt]) -> list[Attempt]:
    """Set the payloads of claims, which may have been released meanwhile; return the claims without one.

    A claim without a payload is not a job, and could neither run nor fail: its row is removed.
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
            "job %s had a row in windlass_hot but none in windlass_job; removed that row, there is nothing to run",
            attempt.claim.job_id,
        )
    for attempt in nameless:
        await pause_damaged(database, attempt.claim, "its id is not a UUID")
    return gone + nameless
