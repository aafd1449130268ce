"""Places at gates that outlive their job's claim: a body that goes on after a cancel keeps its place until it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice

from windlass.engine.attempt import Attempt
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Service
from windlass.stores.database import Database
from windlass.stores.plans import permits

MOST_AT_ONCE = 200


class Leaving(Service):
    """Gives back what ended bodies had kept; tries again until the store has taken it."""

    def __init__(self, database: Database, errors: ErrorHandling) -> None:
        super().__init__("permits", errors)
        self._database = database
        self._ended: deque[Attempt] = deque()
        self.when_freed: Callable[[list[Attempt]], None] = lambda attempts: None
        """Called after the commit with those that gave places back."""

    def leave(self, attempt: Attempt) -> None:
        """Its body has ended, or never begins, and its outcome does not count. On the loop only.

        Whatever its claim says: a limit that was set while it ran counts it in, and only the store knows of that.
        """
        self._ended.append(attempt)
        self.wake()

    async def tick(self) -> float | None:
        """Give back the next ones."""
        if not self._ended:
            return None
        batch = list(islice(self._ended, MOST_AT_ONCE))
        bodies = [permits.Body(attempt.claim.job_id, attempt.claim.fence) for attempt in batch]
        freed = await self._database.arun(permits.leave, bodies)
        for _ in batch:
            self._ended.popleft()
        if freed:
            self.when_freed(batch)
        return 0
