"""Slots: which claims run now, which wait, and how many more the node may take.

A node never hoards: it claims for its free slots, and ahead only what it will start within a few hundredths of a
second at its present pace. Claims that wait longer than that after all are handed back.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from windlass import saying
from windlass.domain.clock import monotonic
from windlass.domain.job import Payload
from windlass.domain.transition import released
from windlass.engine.attempt import HANDED, Attempt, Raised, Stop
from windlass.engine.completer import Completer
from windlass.engine.deadlines import Timeouts, stop
from windlass.engine.invoke import Invoker
from windlass.engine.pace import Pace
from windlass.engine.runner import Runner
from windlass.errors import JobTimeoutError
from windlass.runtime.failpoints import reached
from windlass.runtime.guard import ErrorHandling
from windlass.runtime.service import Service
from windlass.stores import jobs
from windlass.stores.database import Database
from windlass.stores.dialect import Claimed

logger = saying.logger("windlass.coordinator")

CLAIM_AHEAD = 0.05
"""Seconds of work a node may hold claimed beyond its slots, as light claims."""
LOAD_AHEAD = 0.01
"""Seconds of work whose large payloads it may hold besides those that run."""
HAND_BACK_AFTER = 1.0
"""A claim that has waited this long for a slot goes back to its queue."""
CANCELED_FOR = 30.0
"""Seconds for which the answer to a claim may be on its way, while its job is canceled."""
LAST_WORDS = 2.0
"""How long bodies may take to end once a forced drain has cancelled them."""


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
    ) -> None:
        super().__init__("coordinator", errors)
        self._database = database
        self._runner = runner
        self._invoker = invoker
        self._completer = completer
        self._concurrency = concurrency
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._running: set[Attempt] = set()
        self._timeouts = Timeouts(self._loop, self._running, self._abandon)
        self._waiting: deque[Attempt] = deque()
        self._enough = 0
        self._canceled: dict[str, float] = {}
        self._pace = Pace(monotonic())
        self._draining = False
        self._forced = asyncio.Event()
        self.when_left: Callable[[Attempt], None] = lambda attempt: None
        """Called when a body has ended, or will not begin, whose outcome nobody writes."""
        self.when_free: Callable[[], None] = lambda: None
        """Called when a slot frees up and not enough waits for it."""

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
        self._enough = ahead // 2
        return 0 if len(self._waiting) > self._enough else room

    def held(self) -> set[tuple[str, int]]:
        """Ids and fences of every claim this node knows of, from its arrival until its outcome is written."""
        claims = [attempt.claim for attempt in (*self._running, *self._waiting)]
        return {(claim.job_id, claim.fence) for claim in claims} | self._completer.unwritten

    def attempts(self) -> set[Attempt]:
        """Everything claimed here whose outcome is not known yet."""
        return {*self._running, *self._waiting}

    def refuse(self, ids: Iterable[str]) -> None:
        """These were canceled and are not here: if a claim that is on its way brings them, they do not begin."""
        now = monotonic()
        self._canceled = {job: until for job, until in self._canceled.items() if until > now}
        self._canceled |= dict.fromkeys(ids, now + CANCELED_FOR)

    def cancel(self, attempt: Attempt) -> None:
        """Stop an attempt whose claim is gone: what waits is forgotten, what runs is told."""
        if attempt in self._running:
            stop(attempt, Stop.CANCEL)
        elif attempt in self._waiting:
            self._waiting.remove(attempt)
            self.when_left(attempt)

    def _ahead(self, seconds: float) -> int:
        return int(self._pace.per_second(monotonic()) * seconds)

    # ------------------------------------------------------------------ claims come in

    def accept(self, claimed: Claimed, received: float) -> None:
        """Take claims over, in their order: they start, or wait for a slot."""
        payload_of = claimed.payloads.get
        attempts = [Attempt(claim, payload_of(claim.job_id), received) for claim in claimed.claims]
        if self._canceled:
            attempts = self._wanted(attempts)
        self._waiting.extend(attempts)
        if self._draining:
            self._hand_back_unstarted()
            return
        self._fill_slots()
        if self._waiting:
            self.wake()  # a tick looks after what waits too long, whether it has its payload or not

    def _wanted(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Without those that were canceled while their claim was on its way."""
        for attempt in attempts:
            if attempt.claim.job_id in self._canceled:
                self.when_left(attempt)
        return [attempt for attempt in attempts if attempt.claim.job_id not in self._canceled]

    def _fill_slots(self) -> None:
        """Start what may start; the service loads the payload of whatever is next and has none."""
        running, waiting = self._running, self._waiting
        while waiting and len(running) < self._concurrency and not self._draining:
            payload = waiting[0].payload
            if payload is None:
                self.wake()
                return
            self._start(waiting.popleft(), payload)

    def _start(self, attempt: Attempt, payload: Payload) -> None:
        if payload.options is not None:
            attempt.read_options(payload.options)
        self._running.add(attempt)
        # In a context of its own: a slot is mostly filled by the task of the job before, whose variables are not ours.
        attempt.task = self._loop.create_task(self._attend(attempt, payload), context=self._context.copy())
        timeout = self._invoker.timeout_of(attempt)
        if timeout is not None:
            self._timeouts.arm(attempt, timeout)

    async def _attend(self, attempt: Attempt, payload: Payload) -> None:
        try:
            await self._runner.run(attempt, payload)
        except BaseException as error:  # noqa: BLE001 - whatever this is, the job must not stay RUNNING
            self._runner.settle(attempt, Raised(error))
            logger.error("job %s: the engine failed to run it (%s)", attempt.claim.job_id, type(error).__name__)
        finally:
            attempt.task = None
            self._free(attempt)
            self._leave_if_over(attempt)

    def thread_ended(self, attempt: Attempt) -> None:
        """Its body has ended on its thread, maybe long after its job."""
        attempt.body_over = True
        self._leave_if_over(attempt)

    def heard_of(self, attempt: Attempt) -> None:
        """The store has kept the places of its body, or somebody else's write was first: they are free when it ends.

        Not before: places that are given back before they are kept would be kept for ever.
        """
        attempt.settled = True
        self._leave_if_over(attempt)

    def _leave_if_over(self, attempt: Attempt) -> None:
        if attempt.over and (attempt.settled or attempt.stop is Stop.CANCEL):
            self.when_left(attempt)

    def _free(self, attempt: Attempt) -> None:
        if attempt not in self._running:
            return
        self._running.discard(attempt)
        self._timeouts.disarm(attempt)
        self._pace.add()
        if self._waiting:
            self._fill_slots()
        if len(self._waiting) <= self._enough:
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
        batch = [attempt for attempt in islice(self._waiting, max(room, 0)) if attempt.payload is None]
        if batch:
            self._complete(batch, await self._database.aread(jobs.load, [attempt.claim.job_id for attempt in batch]))
            self._fill_slots()
        return HAND_BACK_AFTER / 2 if self._waiting else None

    def _complete(self, batch: Sequence[Attempt], payloads: Mapping[str, Payload]) -> None:
        """Put loaded payloads to their claims, which may have been handed back meanwhile."""
        for attempt in batch:
            attempt.payload = payloads.get(attempt.claim.job_id)
            if attempt.payload is None and attempt in self._waiting:
                logger.error(
                    "job %s is claimed, but its row is gone; somebody deleted it by hand", attempt.claim.job_id
                )
                self._waiting.remove(attempt)

    def _hand_back_late(self) -> None:
        """From the front: those have waited longest."""
        limit = monotonic() - HAND_BACK_AFTER
        while self._waiting and self._waiting[0].received < limit and len(self._running) >= self._concurrency:
            self._hand_back(self._waiting.popleft())

    def _hand_back(self, attempt: Attempt) -> None:
        attempt.transition = released(attempt.claim, attempt.times())
        self._completer.finish(attempt)

    # ------------------------------------------------------------------ the end

    async def drain(self, timeout: float) -> bool:
        """Hand back what has not started, let the rest finish, then stop it without spending attempts.

        True: all finished.
        """
        self._draining = True
        reached("drain.before_hand_back")
        self._hand_back_unstarted()
        await self._wait_for_bodies(timeout, self._forced)
        clean = not self._running
        for attempt in list(self._running):
            stop(attempt, Stop.DRAIN)
        await self._wait_for_bodies(LAST_WORDS)
        for attempt in list(self._running):
            self._runner.settle(attempt, HANDED)
            self._free(attempt)
        self._timeouts.close()
        return clean

    def _hand_back_unstarted(self) -> None:
        while self._waiting:
            self._hand_back(self._waiting.popleft())

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
