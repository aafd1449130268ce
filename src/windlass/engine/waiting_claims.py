"""Claims that wait for a slot, in their order.

The first of them may be prepared for a thread, which starts the next one as soon as it has finished another body. A
thread that had to wait for the loop would be idle as long as the loop is busy: for bodies of a few milliseconds that is
a quarter of the time. Large payloads are read when a slot is about to take their job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from windlass import loggers
from windlass.domain.job import Payload
from windlass.engine.attempt import Attempt
from windlass.engine.damage import is_id, pause_damaged
from windlass.errors import SerializationError
from windlass.feature import ArgumentSource
from windlass.flow.guards import Guards
from windlass.stores.database import Database
from windlass.stores.plans import damaged, jobs

logger = loggers.logger("windlass.slots")


class WaitingClaims:
    """Claims without a slot. Used on the loop only."""

    def __init__(
        self, database: Database, arguments: Sequence[ArgumentSource] = (), guards: Guards | None = None
    ) -> None:
        self._database = database
        self._guards = guards
        self._arguments = arguments
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

    def complete(self, payloads: Mapping[str, Payload]) -> Mapping[str, Payload]:
        """Return the payloads that came with claims, but for those with arguments that are still to be read."""
        for payload in payloads.values():  # not `any` of a generator: this is asked for every claim
            if payload.options:
                break
        else:
            return payloads
        return {job: payload for job, payload in payloads.items() if not (payload.options and self._needs(payload))}

    def _needs(self, payload: Payload) -> bool:
        """Return whether something is to be read before the job can run."""
        if self._guards is not None and self._guards.concerns(payload):
            return True
        for source in self._arguments:  # noqa: SIM110 - asked for every claim of a job with options
            if source.concerns(payload):
                return True
        return False

    async def load(self, first: int) -> bool:
        """Read the large payloads of the first so many; return whether there were any to read."""
        batch = [attempt for attempt in islice(self.others, first) if attempt.payload is None]
        if not batch:
            return False
        found = await _load(self._database, batch)
        for source in self._arguments:
            await _complete(self._database, source, batch, found)
        if self._guards is not None:
            await _guard(self._database, self._guards, batch, found)
        # Only now: a slot may take a claim that has its payload at any moment.
        for attempt in batch:
            attempt.payload = found.get(attempt.claim.job_id)
            if attempt.payload is None:
                self.withdraw(attempt)
        return True


async def _complete(
    database: Database, source: ArgumentSource, batch: Sequence[Attempt], payloads: dict[str, Payload]
) -> None:
    """Complete payloads; the job of one that cannot be completed fails when it is its turn."""
    wanted = {job: payload for job, payload in payloads.items() if payload.options and source.concerns(payload)}
    if not wanted:
        return
    read = await database.aread(source.read, wanted)
    for attempt in batch:
        claim = attempt.claim
        if claim.job_id not in wanted:
            continue
        try:
            payloads[claim.job_id] = source.fill(claim, wanted[claim.job_id], read)
        except SerializationError as error:
            attempt.refusal = error.with_traceback(None)  # it has only our own frames


async def _guard(database: Database, guards: Guards, batch: Sequence[Attempt], payloads: dict[str, Payload]) -> None:
    """Give attempts the guards that they have to pass."""
    wanted = {job: payload for job, payload in payloads.items() if payload.options and guards.concerns(payload)}
    if not wanted:
        return
    found = await database.aread(guards.read, wanted)
    for attempt in batch:
        attempt.guard = found.get(attempt.claim.job_id)


async def _load(database: Database, batch: Sequence[Attempt]) -> dict[str, Payload]:
    """Return the payloads of claims, which may have been released meanwhile.

    A claim without a payload is not a job, and could neither run nor fail: its row is removed.
    """
    nameless = [attempt for attempt in batch if not is_id(attempt.claim.job_id)]
    wanted = [attempt.claim for attempt in batch if attempt not in nameless]
    found = await database.aread(jobs.load, [claim.job_id for claim in wanted]) if wanted else {}
    for claim in wanted:
        if claim.job_id in found:
            continue
        await database.arun(damaged.remove_orphan, claim.job_id, claim.fence)
        logger.error(
            "job %s had a row in windlass_hot but none in windlass_job; removed that row, there is nothing to run",
            claim.job_id,
        )
    for attempt in nameless:
        await pause_damaged(database, attempt.claim, "its id is not a UUID")
    return found
