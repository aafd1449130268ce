"""Slots: which claims run now, which wait, and how many more the node may take.

A node never hoards: it claims for its free slots, and ahead only what it will start within a few hundredths of a
second at its present pace. Claims that wait longer than that after all are handed back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from windlass.domain.clock import monotonic
from windlass.domain.job import Claim, Payload
from windlass.domain.transition import released
from windlass.engine.attempt import Attempt, Handed, Raised, Stop, unstarted_times
from windlass.engine.completer import Completer, Finished
from windlass.engine.deadlines import Timeouts, stop
from windlass.engine.invoke import Invoker
from windlass.engine.pace import Pace
from windlass.engine.runner import Runner
from windlass.errors import JobTimeoutError
from windlass.runtime.guard import ErrorHandling
from windlass.runtime.service import Service
from windlass.stores import jobs
from windlass.stores.database import Database
from windlass.stores.dialect import Claimed

logger = logging.getLogger("windlass.coordinator")

CLAIM_AHEAD = 0.05
"""Seconds of work a node may hold claimed beyond its slots, as light claims."""
LOAD_AHEAD = 0.01
"""Seconds of work whose large payloads it may hold besides those that run."""
HAND_BACK_AFTER = 1.0
"""A claim that has waited this long for a slot goes back to its queue."""
LAST_WORDS = 2.0
"""How long bodies may take to end once a forced drain has cancelled them."""


class Waiting(NamedTuple):
    """A claim that waits for a slot; its payload is None as long as it is large and not read."""

    claim: Claim
    received: float
    payload: Payload | None


class Coordinator(Service):
    """Runs attempts in `concurrency` slots. As a service it loads the payloads of waiting claims, many at once."""

    def __init__(
        self,
        database: Database,
        runner: Runner,
        invoker: Invoker,
        completer: Completer,
        errors: ErrorHandling,
        concurrency: int,
        most_ahead: int,
    ) -> None:
        super().__init__("coordinator", errors)
        self._database = database
        self._runner = runner
        self._invoker = invoker
        self._completer = completer
        self._concurrency = concurrency
        self._most_ahead = most_ahead
        self._loop = asyncio.get_running_loop()
        self._running: set[Attempt] = set()
        self._timeouts = Timeouts(self._loop, self._running, self._abandon)
        self._waiting: deque[Waiting] = deque()
        self._pace = Pace(monotonic())
        self._draining = False
        self._forced = asyncio.Event()
        self.when_free: Callable[[], None] = lambda: None
        """Called whenever a slot frees up."""

    # ------------------------------------------------------------------ what the poller asks

    @property
    def running(self) -> int:
        """How many attempts run now."""
        return len(self._running)

    @property
    def utilisation(self) -> float:
        """Share of the slots in use."""
        return len(self._running) / self._concurrency

    def room(self) -> int:
        """How many more jobs the node may claim."""
        if self._draining or self._completer.full:
            return 0
        ahead = self._ahead(CLAIM_AHEAD)
        room = self._concurrency + ahead - len(self._running) - len(self._waiting)
        # While enough waits, claims are saved up: many small ones cost more than they bring forward.
        return 0 if len(self._waiting) > ahead // 2 else room

    def held(self) -> set[tuple[UUID, int]]:
        """Ids and fences of every claim this node knows of, from its arrival until its outcome is written."""
        claims = [attempt.claim for attempt in self._running] + [waiting.claim for waiting in self._waiting]
        return {(claim.job_id, claim.fence) for claim in claims} | self._completer.unwritten

    def _ahead(self, seconds: float) -> int:
        return min(self._most_ahead, int(self._pace.per_second(monotonic()) * seconds))

    # ------------------------------------------------------------------ claims come in

    def accept(self, claimed: Claimed, received: float) -> None:
        """Take claims over, in their order: they start, or wait for a slot."""
        payloads = claimed.payloads
        self._waiting.extend([Waiting(claim, received, payloads.get(claim.job_id)) for claim in claimed.claims])
        if self._draining:
            self._hand_back_unstarted()
            return
        self._fill_slots()
        if self._waiting:
            self.wake()  # a tick looks after what waits too long, whether it has its payload or not

    def _fill_slots(self) -> None:
        """Start what may start; the service loads the payload of whatever is next and has none."""
        running, waiting = self._running, self._waiting
        while waiting and len(running) < self._concurrency and not self._draining:
            claim, received, payload = waiting[0]
            if payload is None:
                self.wake()
                return
            waiting.popleft()
            self._start(Attempt.of(claim, payload, received))

    def _start(self, attempt: Attempt) -> None:
        self._running.add(attempt)
        attempt.task = self._loop.create_task(self._attend(attempt))
        timeout = self._invoker.timeout_of(attempt)
        if timeout is not None:
            self._timeouts.arm(attempt, timeout)

    async def _attend(self, attempt: Attempt) -> None:
        try:
            await self._runner.run(attempt)
        except BaseException as error:  # noqa: BLE001 - whatever this is, the job must not stay RUNNING
            logger.error("job %s: the engine failed to run it (%s)", attempt.claim.job_id, type(error).__name__)
            self._runner.settle(attempt, Raised(error))
        finally:
            self._free(attempt)

    def _free(self, attempt: Attempt) -> None:
        if attempt not in self._running:
            return
        self._running.discard(attempt)
        self._timeouts.disarm(attempt)
        self._pace.add()
        if self._waiting:
            self._fill_slots()
        self.when_free()

    def _abandon(self, attempt: Attempt) -> None:
        """Its body does not end although it was told to.

        Pass the verdict without it. Whatever it still does is fenced off.
        """
        logger.error(
            "job %s does not end after its timeout; its slot is freed, its body is left alone", attempt.claim.job_id
        )
        self._runner.settle(
            attempt, Raised(JobTimeoutError("the job ran over its timeout and ignored being cancelled"))
        )
        self._free(attempt)

    # ------------------------------------------------------------------ payloads

    async def tick(self) -> float | None:
        """Load large payloads for the slots that are free or soon will be."""
        self._hand_back_late()
        room = self._concurrency - len(self._running) + self._ahead(LOAD_AHEAD)
        batch = [waiting.claim.job_id for waiting in islice(self._waiting, max(room, 0)) if waiting.payload is None]
        if batch:
            payloads = await self._database.aread(jobs.load, batch)
            self._complete(batch, {payload.job_id: payload for payload in payloads})
            self._fill_slots()
        return HAND_BACK_AFTER / 2 if self._waiting else None

    def _complete(self, batch: Sequence[UUID], payloads: Mapping[UUID, Payload]) -> None:
        """Put loaded payloads to their claims, which may have moved up, or been handed back, meanwhile."""
        gone = set(batch) - payloads.keys()
        for job_id in gone:
            logger.error("job %s is claimed, but its row is gone; somebody deleted it by hand", job_id)
        self._waiting = deque(
            waiting if waiting.payload is not None else waiting._replace(payload=payloads.get(waiting.claim.job_id))
            for waiting in self._waiting
            if waiting.claim.job_id not in gone
        )

    def _hand_back_late(self) -> None:
        """From the front: those have waited longest."""
        limit = monotonic() - HAND_BACK_AFTER
        while self._waiting and self._waiting[0].received < limit and len(self._running) >= self._concurrency:
            self._hand_back(*self._waiting.popleft()[:2])

    def _hand_back(self, claim: Claim, received: float) -> None:
        transition = released(claim, unstarted_times(claim, received))
        self._completer.finish(Finished(transition, claim.queue, claim.target, claim.priority))

    # ------------------------------------------------------------------ the end

    async def drain(self, timeout: float) -> bool:
        """Hand back what has not started, let the rest finish, then stop it without spending attempts.

        True: all finished.
        """
        self._draining = True
        self._hand_back_unstarted()
        await self._wait_for_bodies(timeout, self._forced)
        clean = not self._running
        for attempt in list(self._running):
            stop(attempt, Stop.DRAIN)
        await self._wait_for_bodies(LAST_WORDS)
        for attempt in list(self._running):
            self._runner.settle(attempt, Handed())
            self._free(attempt)
        self._timeouts.close()
        return clean

    def _hand_back_unstarted(self) -> None:
        while self._waiting:
            self._hand_back(*self._waiting.popleft()[:2])

    def force(self) -> None:
        """End the patience of a drain that is under way."""
        self._forced.set()

    async def _wait_for_bodies(self, timeout: float, forced: asyncio.Event | None = None) -> None:
        tasks = {attempt.task for attempt in self._running if attempt.task is not None}
        if not tasks:
            return
        bodies = asyncio.ensure_future(asyncio.wait(tasks, timeout=timeout))
        impatience = asyncio.ensure_future((forced or asyncio.Event()).wait())
        await asyncio.wait({bodies, impatience}, return_when=asyncio.FIRST_COMPLETED)
        for waiter in (bodies, impatience):
            waiter.cancel()
