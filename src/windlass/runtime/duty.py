"""The base class of duties: work that a cluster does once, not once per node, such as purge, archive and sweep.

Every node runs the service. A lease in the store decides which node works, and when. The holder works in bounded
batches; each batch renews the lease in its own transaction and writes nothing if another node has taken the lease over.
A holder that was suspended and wakes up later therefore changes nothing.
"""

from __future__ import annotations

import asyncio
import random
from abc import abstractmethod
from typing import Protocol

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Bell, Service

logger = loggers.logger("windlass.duty")

LONGEST_PAUSE = 60.0
"""Longest time in seconds between two checks of the lease: the clock or the settings may change."""
SHORTEST_PAUSE = 0.05
LONGEST_REST = 1.0


class LeaseLostError(Exception):
    """Another node holds the lease now; nothing was written."""


class Turns(Protocol):
    """A named lease and its rhythm, as a duty uses them."""

    async def take(self) -> float:
        """Try to take the lease; return 0 on success, else the seconds after which to try again."""
        ...

    async def release(self, *, passed: bool) -> None:
        """Release the lease; `passed` means that everything due is done until the rhythm's next time."""


class Duty(Service):
    """A service that works while its node holds a lease. Subclasses implement `batch`."""

    def __init__(self, name: str, turns: Turns, errors: ErrorHandling, bell: Bell | None = None) -> None:
        super().__init__(name, errors, bell)
        self._turns = turns

    @abstractmethod
    async def batch(self) -> bool:
        """Do a bounded amount of work under the lease; return True if there may be more."""

    def begin(self) -> None:
        """Prepare for a pass. Called after the lease was taken, before the first batch."""

    def rest_after(self, seconds: float) -> float:
        """Return the pause after a batch of so many seconds: as long, so that jobs get half of the store."""
        return min(seconds, LONGEST_REST)

    async def tick(self) -> float | None:
        """Run a whole pass if this node gets the lease; return the seconds until the next check."""
        wait = await self._turns.take()
        if wait <= 0:
            await self._pass()
            return SHORTEST_PAUSE
        late = min(wait / 10, 1.0) * random.random()  # noqa: S311 - spreads nodes, guards nothing
        return min(max(wait, SHORTEST_PAUSE), LONGEST_PAUSE) + late

    async def _pass(self) -> None:
        """Run batches until none is left, the lease is lost, or the node drains; then release the lease."""
        passed = False
        try:
            self.begin()
            passed = await self._work()
        except LeaseLostError:
            logger.info("%s: another node has taken over the lease and continues", self.name)
            return
        except Exception:
            await self._release_lease()
            raise
        await self._turns.release(passed=passed)

    async def _work(self) -> bool:
        """Return True when everything is done."""
        while self.alive:
            started = monotonic()
            if not await self.batch():
                return True
            await asyncio.sleep(self.rest_after(monotonic() - started))
        return False

    async def _release_lease(self) -> None:
        """Release the lease after an error, if the store can be reached; otherwise the lease expires."""
        try:
            await self._turns.release(passed=False)
        except Exception as error:  # noqa: BLE001 - the first error is the one to report
            logger.debug("%s: could not release the lease, which will expire: %s", self.name, type(error).__name__)
