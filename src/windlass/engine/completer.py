"""Writes transitions: what finished together shares a commit, each still guarded by its own fence; then tells who
waits.

A flush starts as soon as the one before it has ended, so a lone job is not held up by any timer, and under load
batches grow by themselves. Consequence plans (what else must happen in the same transaction) are registered by their
features; the engine knows none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from windlass.domain.transition import Failure, Transition, dead_letter
from windlass.engine.attempt import Attempt
from windlass.errors import StoreUnavailableError
from windlass.runtime.guard import ErrorHandling
from windlass.runtime.service import Service
from windlass.stores import jobs
from windlass.stores.database import Database, StoreDataError
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan

logger = logging.getLogger("windlass.completer")

MOST_IN_A_FLUSH = 500
WORTH_A_COMMIT = 64
GATHER = 0.003
"""Seconds to gather outcomes after a small commit of several: a lone job is never held up by this."""
BACKLOG = 5_000
"""Transitions that may wait to be written; beyond that no job is claimed."""


class Finished(NamedTuple):
    """A transition on its way to the store. `attempt` is None for claims handed back before they were loaded."""

    transition: Transition
    queue: str
    target: str
    level: int
    attempt: Attempt | None = None


Consequence = Callable[[Dialect, Sequence[Finished]], Plan[None]]
"""What else to write for the transitions that were won, in their transaction."""

Told = Callable[[Sequence[Finished]], None]
"""Called after the commit with the transitions that were won, in order."""


class Completer(Service):
    """One flush after the other, on the loop."""

    def __init__(self, database: Database, told: Told, errors: ErrorHandling, *, one_by_one: bool = False) -> None:
        super().__init__("completer", errors)
        self._database = database
        self._told = told
        self._most = 1 if one_by_one else MOST_IN_A_FLUSH
        self._waiting: deque[Finished] = deque()
        self._consequences: list[Consequence] = []
        self._unsure = False
        self._empty = asyncio.Event()
        self._empty.set()
        self.stale = 0
        """Writes refused by their fence since the start."""

    def add_consequence(self, consequence: Consequence) -> None:
        """Register a plan that runs in the transaction of the transitions."""
        self._consequences.append(consequence)

    @property
    def full(self) -> bool:
        """Whether so much waits to be written that no more work should be started."""
        return len(self._waiting) >= BACKLOG

    @property
    def unwritten(self) -> set[tuple[UUID, int]]:
        """Ids and fences of what is still to be written."""
        return {(finished.transition.job_id, finished.transition.fence) for finished in self._waiting}

    def finish(self, finished: Finished) -> None:
        """Hand over a transition; it is written soon, or as soon as the store is back."""
        self._waiting.append(finished)
        if self._empty.is_set():
            self._empty.clear()
            self.wake()

    async def flushed(self) -> None:
        """Wait until everything handed over is written."""
        await self._empty.wait()

    async def tick(self) -> float | None:
        """Write the next batch."""
        if not self._waiting:
            self._empty.set()
            return None
        batch = [self._waiting[index] for index in range(min(len(self._waiting), self._most))]
        await self._write(batch)
        return GATHER if 1 < len(batch) < WORTH_A_COMMIT and len(self._waiting) < WORTH_A_COMMIT else 0

    async def _write(self, batch: list[Finished]) -> None:
        """Write a batch; the database refusing its values splits it until the bad row is alone."""
        try:
            won = await self._database.arun(_apply, batch, self._consequences, retried=self._unsure)
        except StoreUnavailableError:
            self._unsure = True  # the commit may have happened: the next try looks before it writes
            raise
        except StoreDataError as error:
            if len(batch) == 1:
                await self._write_poison(batch[0], error)
                return
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])
            return
        self._unsure = False
        self._written(batch)
        winners = batch if all(won) else self._winners(batch, won)
        if winners:
            self._told(winners)

    def _written(self, batch: Sequence[Finished]) -> None:
        """Part by part: what of a split batch is written must not be tried again when the rest of it fails."""
        for _ in batch:
            self._waiting.popleft()

    def _winners(self, batch: Sequence[Finished], won: Sequence[bool]) -> list[Finished]:
        for finished, fine in zip(batch, won, strict=True):
            if not fine:
                self.stale += 1
                logger.warning(
                    "job %s: the outcome %r came too late and was refused; "
                    "another claim, a recovery or a cancel was first",
                    finished.transition.job_id,
                    finished.transition.outcome,
                )
        return [finished for finished, fine in zip(batch, won, strict=True) if fine]

    async def _write_poison(self, finished: Finished, error: StoreDataError) -> None:
        """A job whose outcome the database will not take fails, with an error that it will take."""
        transition, attempt = finished.transition, finished.attempt
        if attempt is None or transition.reason == "poison_payload":
            logger.error("job %s: the database refuses its outcome: %s", transition.job_id, error)
            self._written([finished])
            return
        failure = Failure("StoreDataError: the database refused what this job would store", "StoreDataError")
        holds_key = attempt.payload.business_key is not None
        poison = dead_letter(attempt.claim, transition.times, failure, "poison_payload", holds_key=holds_key)
        await self._write([finished._replace(transition=poison)])


def _apply(
    dialect: Dialect, batch: Sequence[Finished], consequences: Sequence[Consequence], *, retried: bool
) -> Plan[list[bool]]:
    transitions = [finished.transition for finished in batch]
    won = yield from jobs.apply(dialect, transitions, retried=retried, alone=not consequences)
    winners = [finished for finished, fine in zip(batch, won, strict=True) if fine]
    for consequence in consequences:
        yield from consequence(dialect, winners)
    return won
