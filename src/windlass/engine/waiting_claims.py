"""Claims that wait for a slot, in their order.

The first of them may be made ready for a thread, which enters the next one as soon as it is done with another body. A
thread that had to ask the loop for it would stand still for as long as the loop has other things to do: at bodies of a
few milliseconds that is a quarter of the time. Large payloads are read when a slot is about to take their job.
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
    """What was claimed and has no slot. All of it on the loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.ready: deque[Attempt] = deque()
        """Those that have their turn for a thread: each may begin at any moment. They precede all others."""
        self.others: deque[Attempt] = deque()

    def __len__(self) -> int:
        return len(self.ready) + len(self.others)

    def __iter__(self) -> Iterator[Attempt]:
        return chain(self.ready, self.others)

    def begin(self) -> Attempt:
        """Take out the first that is ready: a slot is free, so its body begins now, if it has not."""
        attempt = self.ready.popleft()
        if attempt.turn is not None:
            attempt.turn.begin()
        return attempt

    def withdraw(self, attempt: Attempt) -> bool:
        """Take out an attempt whose body must not begin; False if it has begun, or does not wait."""
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
        """Take out all of those that are ready, came in before then and have not begun."""
        return [attempt for attempt in list(self.ready) if attempt.received < before and self.withdraw(attempt)]

    async def load(self, first: int) -> bool:
        """Read the large payloads of the first so many; say whether there were any to read."""
        batch = [attempt for attempt in islice(self.others, first) if attempt.payload is None]
        for missing in await _load(self._database, batch) if batch else ():
            self.withdraw(missing)
        return bool(batch)


async def _load(database: Database, batch: Sequence[Attempt]) -> list[Attempt]:
    """Put payloads to their claims, which may have been released meanwhile; give those that have none.

    A claim without one is no job, and could neither run nor fail: its row is taken out of the way.
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
