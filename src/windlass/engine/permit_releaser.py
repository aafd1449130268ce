"""Permits that outlive their job's claim: a body that still runs after a cancel keeps its permits until it ends."""

from __future__ import annotations

from collections import deque
from itertools import islice

from windlass.engine.attempt import Attempt
from windlass.engine.node_wakeups import NodeWakeups
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Service
from windlass.stores.database import Database
from windlass.stores.plans import permits

MAX_AT_ONCE = 200


class PermitReleaser(Service):
    """Releases the permits of ended bodies; tries again until the store has accepted it."""

    def __init__(self, database: Database, wakeups: NodeWakeups, errors: ErrorHandling) -> None:
        super().__init__("permits", errors)
        self._database = database
        self._wakeups = wakeups
        self._ended: deque[Attempt] = deque()

    def release(self, attempt: Attempt) -> None:
        """Release the permits of a body that has ended, or never starts, and whose outcome does not count.

        On the loop only. Also if its claim holds none: a limit that was set while it ran counts it, and only the store
        knows that.
        """
        self._ended.append(attempt)
        self.wake()

    async def tick(self) -> float | None:
        """Release the permits of the next bodies."""
        if not self._ended:
            return None
        batch = list(islice(self._ended, MAX_AT_ONCE))
        bodies = [permits.Body(attempt.claim.job_id, attempt.claim.fence) for attempt in batch]
        freed = await self._database.arun(permits.release, bodies)
        for _ in batch:
            self._ended.popleft()
        if freed:
            self._wakeups.permits_freed([attempt.claim for attempt in batch])
        return 0
