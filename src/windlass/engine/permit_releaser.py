"""Permits that outlive their job's claim: a body that goes on after a cancel keeps its permits until it ends."""

from __future__ import annotations

from collections import deque
from itertools import islice

from windlass.engine.attempt import Attempt
from windlass.engine.node_wakeups import NodeWakeups
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Service
from windlass.stores.database import Database
from windlass.stores.plans import permits

MOST_AT_ONCE = 200


class PermitReleaser(Service):
    """Releases what ended bodies had kept; tries again until the store has taken it."""

    def __init__(self, database: Database, wakeups: NodeWakeups, errors: ErrorHandling) -> None:
        super().__init__("permits", errors)
        self._database = database
        self._wakeups = wakeups
        self._ended: deque[Attempt] = deque()

    def release(self, attempt: Attempt) -> None:
        """Its body has ended, or never begins, and its outcome does not count. On the loop only.

        Whatever its claim says: a limit that was set while it ran counts it in, and only the store knows of that.
        """
        self._ended.append(attempt)
        self.wake()

    async def tick(self) -> float | None:
        """Release those of the next bodies."""
        if not self._ended:
            return None
        batch = list(islice(self._ended, MOST_AT_ONCE))
        bodies = [permits.Body(attempt.claim.job_id, attempt.claim.fence) for attempt in batch]
        freed = await self._database.arun(permits.leave, bodies)
        for _ in batch:
            self._ended.popleft()
        if freed:
            self._wakeups.permits_freed([attempt.claim for attempt in batch])
        return 0
