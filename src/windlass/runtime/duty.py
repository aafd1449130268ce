"""The one skeleton of duties that a cluster does once, not once per node: purge, archive, sweep, count.

Every node runs the service; a lease that the store keeps says whose turn it is, and when. Whoever has it works in
bounded batches, each of which renews the lease in its own transaction and writes nothing if the lease was taken over
meanwhile. So a holder that was stopped and wakes up later changes nothing.
"""

from __future__ import annotations

import asyncio
import random
from abc import abstractmethod
from typing import Protocol

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.service import Service

logger = loggers.logger("windlass.duty")

LONGEST_PAUSE = 60.0
"""Seconds between two looks at the most: a clock may be set, a setting changed."""
SHORTEST_PAUSE = 0.05
LONGEST_REST = 1.0


class LeaseLostError(Exception):
    """The lease is somebody else's by now: nothing was written."""


class Turns(Protocol):
    """A named lease and its rhythm, as a duty uses it."""

    async def take(self) -> float:
        """Take the lease; 0 if it is ours now, else the seconds after which it is worth asking again."""
        ...

    async def give_back(self, *, passed: bool) -> None:
        """Leave it to others; `passed` says that all that was due is done, until the rhythm's next time."""


class Duty(Service):
    """A service that works when it is its node's turn; a subclass says in `batch` what it does."""

    def __init__(self, name: str, turns: Turns, errors: ErrorHandling) -> None:
        super().__init__(name, errors)
        self._turns = turns

    @abstractmethod
    async def batch(self) -> bool:
        """Do a bounded piece of work under the lease; True when there may be more."""

    def begin(self) -> None:
        """Called when the lease was taken, before the first batch."""

    async def tick(self) -> float | None:
        """One look: a whole pass if it is this node's turn."""
        wait = await self._turns.take()
        if wait <= 0:
            await self._pass()
            return SHORTEST_PAUSE
        late = min(wait / 10, 1.0) * random.random()  # noqa: S311 - spreads nodes, guards nothing
        return min(max(wait, SHORTEST_PAUSE), LONGEST_PAUSE) + late

    async def _pass(self) -> None:
        """Batch after batch, until there is no more, the lease is lost, or the node drains."""
        passed = False
        try:
            self.begin()
            passed = await self._work()
        except LeaseLostError:
            logger.info("%s: its lease was taken over by another node, which goes on", self.name)
            return
        except Exception:
            await self._leave_it()
            raise
        await self._turns.give_back(passed=passed)

    async def _work(self) -> bool:
        """True when all is done. Rests as long as it works, so that jobs get at least half of the store."""
        while self.alive:
            started = monotonic()
            if not await self.batch():
                return True
            await asyncio.sleep(min(monotonic() - started, LONGEST_REST))
        return False

    async def _leave_it(self) -> None:
        """After an error, if the store can still be told; if not, the lease runs out by itself."""
        try:
            await self._turns.give_back(passed=False)
        except Exception as error:  # noqa: BLE001 - the first error is the one to tell of
            logger.debug("%s: its lease could not be given back: %s", self.name, type(error).__name__)
