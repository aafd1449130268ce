"""Running jobs whose claim is gone: canceled by somebody, or taken over. They are told to stop.

A cancel is told to the nodes as it is committed; a node that hears of something without knowing what, or nothing for a
while, compares what it runs with what it holds in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from windlass import saying
from windlass.domain.clock import monotonic
from windlass.domain.job import Claim
from windlass.engine.attempt import Attempt
from windlass.engine.coordinator import Coordinator
from windlass.runtime.guard import ErrorHandling
from windlass.runtime.service import Service
from windlass.stores import jobs
from windlass.stores.database import Database
from windlass.stores.dialect import Claimed

logger = saying.logger("windlass.cancel")

STRAY_AFTER = 40.0
"""Seconds after which a claim that only the store knows of is taken up: by then no answer can be on its way."""
AT_MOST_EVERY = 0.25
"""Seconds between two looks, however often something was heard."""


class Cancellations(Service):
    """Ends attempts that are canceled."""

    def __init__(
        self,
        database: Database,
        coordinator: Coordinator,
        node: Callable[[], str],
        every: float,
        errors: ErrorHandling,
    ) -> None:
        super().__init__("cancellations", errors)
        self._database = database
        self._coordinator = coordinator
        self._node = node
        self._every = every
        self._looked = float("-inf")
        self._strays: dict[tuple[str, int], float] = {}
        self._next_look: asyncio.TimerHandle | None = None

    def told(self, ids: Collection[str]) -> None:
        """These jobs were canceled; none named: some were, somewhere. On the loop only."""
        if ids:
            here = [attempt for attempt in self._coordinator.attempts() if attempt.claim.job_id in ids]
            self._end(here)
            self._coordinator.refuse(set(ids) - {attempt.claim.job_id for attempt in here})
        elif self._next_look is None:
            pause = max(self._looked + AT_MOST_EVERY - monotonic(), 0)
            self._next_look = asyncio.get_running_loop().call_later(pause, self._look)

    def _look(self) -> None:
        self._next_look = None
        self.wake()

    async def tick(self) -> float | None:
        """Compare, and look again after a while; sooner if something is heard, but not for each word."""
        self._looked = monotonic()
        await self._compare()
        return self._every

    async def _compare(self) -> None:
        before, known = self._coordinator.attempts(), self._coordinator.held()
        claims = await self._database.aread(jobs.claims_of, self._node())
        held = {(claim.job_id, claim.fence) for claim in claims}
        still = self._coordinator.attempts()
        self._end([attempt for attempt in before if _key(attempt) not in held and attempt in still])
        known |= self._coordinator.held()
        self._take_up([claim for claim in claims if (claim.job_id, claim.fence) not in known])

    def _take_up(self, strays: Sequence[Claim]) -> None:
        """Claims in this node's name that nobody here knows of: their answer was lost, and nobody else runs them."""
        now = monotonic()
        since = self._strays
        self._strays = {(claim.job_id, claim.fence): since.get((claim.job_id, claim.fence), now) for claim in strays}
        old = [claim for claim in strays if now - self._strays[claim.job_id, claim.fence] > STRAY_AFTER]
        if old:
            logger.warning("%d jobs were claimed for this node without its knowledge; they begin now", len(old))
            self._coordinator.accept(Claimed(old, {}), now)

    def _end(self, attempts: Collection[Attempt]) -> None:
        for attempt in attempts:
            claim = attempt.claim
            logger.info("job %s (%s) is canceled, or another node's by now", claim.job_id, claim.target)
            self._coordinator.cancel(attempt)


def _key(attempt: Attempt) -> tuple[str, int]:
    return attempt.claim.job_id, attempt.claim.fence
