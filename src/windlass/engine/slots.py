"""Slots: which claims run now, which wait, and how many more the node may take.

A node never hoards: it claims for its free slots, and ahead only what it will start within a few hundredths of a
second at its present pace. Claims that wait longer than that after all are handed back.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from itertools import islice

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.domain.job import Payload
from windlass.domain.transition import released
from windlass.engine import payloads
from windlass.engine.attempt import HANDED, Attempt, Raised, Stop
from windlass.engine.completer import Completer
from windlass.engine.drain import Drain
from windlass.engine.invoke import Invoker
from windlass.engine.known_work import KnownWork
from windlass.engine.line import Line
from windlass.engine.lingering_bodies import LingeringBodies
from windlass.engine.pace import Pace
from windlass.engine.refusals import Refusals
from windlass.engine.runner import Runner
from windlass.engine.timeouts import Timeouts, stop
from windlass.errors import JobTimeoutError
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.runtime.service import Service
from windlass.stores.database import Database
from windlass.stores.dialect import Claimed

logger = loggers.logger("windlass.slots")

CLAIM_AHEAD = 0.05
"""Seconds of work a node may hold claimed beyond its slots, as light claims."""
LINED_UP = 0.08
"""Share of that whose bodies stand ready for the threads that run others: 4 milliseconds of work."""
LOAD_AHEAD = 0.01
"""Seconds of work whose large payloads it may hold besides those that run."""
HAND_BACK_AFTER = 1.0
"""A claim that has waited this long for a slot goes back to its queue."""


class Slots(Service):
    """Runs attempts in `concurrency` slots. As a service it loads the payloads of waiting claims, many at once."""

    def __init__(
        self,
        database: Database,
        runner: Runner,
        invoker: Invoker,
        completer: Completer,
        lingering: LingeringBodies,
        work: KnownWork,
        errors: ErrorHandling,
        concurrency: int,
    ) -> None:
        super().__init__("slots", errors)
        self._database = database
        self._runner = runner
        self._invoker = invoker
        self._completer = completer
        self._work = work
        self._concurrency = concurrency
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._running: set[Attempt] = set()
        self._timeouts = Timeouts(self._loop, self._running, self._abandon)
        self._waiting: deque[Attempt] = deque()
        self._line = Line()
        self._longest_line = 0
        self._enough = 0
        self.refusals = Refusals()
        """Jobs that were canceled before their claims came in."""
        self._pace = Pace(monotonic())
        self._draining = False
        self._drain = Drain(self._running, self._give_up)
        self.lingering = lingering
        self.freed = asyncio.Event()
        """Set whenever a slot frees up; whoever waits for it clears it first."""

    # ------------------------------------------------------------------ what the poller asks

    @property
    def running(self) -> int:
        """How many attempts run now."""
        return len(self._running)

    @property
    def utilisation(self) -> float:
        """Share of the slots in use."""
        return len(self._running) / self._concurrency

    def running_attempts(self) -> list[Attempt]:
        """Those in slots. From any thread."""
        return list(self._running)

    @property
    def slots_taken(self) -> int | None:
        """How many slots there are, if all of them are in use; else None. From any thread."""
        return self._concurrency if len(self._running) >= self._concurrency else None

    def room(self) -> int:
        """How many more jobs the node may claim."""
        if self._draining or self._completer.full:
            return 0
        ahead = self._ahead(CLAIM_AHEAD)
        waiting = len(self._waiting) + len(self._line)
        # While enough waits, claims are saved up: many small ones cost more than they bring forward.
        self._enough = ahead // 2
        self._longest_line = min(self._concurrency, int(ahead * LINED_UP))
        return 0 if waiting > self._enough else self._concurrency + ahead - len(self._running) - waiting

    def held(self) -> set[tuple[str, int]]:
        """Ids and fences of every claim this node knows of, from its arrival until its outcome is written."""
        claims = [attempt.claim for attempt in self.attempts()]
        return {(claim.job_id, claim.fence) for claim in claims} | self._completer.unwritten

    def attempts(self) -> set[Attempt]:
        """Everything claimed here whose outcome is not known yet."""
        return {*self._running, *self._line, *self._waiting}

    def cancel(self, attempt: Attempt) -> None:
        """Stop an attempt whose claim is gone: what waits is forgotten, what runs is told."""
        if attempt in self._line and self._line.withdraw(attempt):
            attempt.stop = Stop.CANCEL
            self.lingering.release(attempt)
        elif attempt in self._running or attempt in self._line:
            stop(attempt, Stop.CANCEL)
        elif attempt in self._waiting:
            self._waiting.remove(attempt)
            self.lingering.release(attempt)

    def _ahead(self, seconds: float) -> int:
        return int(self._pace.per_second(monotonic()) * seconds)

    # ------------------------------------------------------------------ claims come in

    def accept(self, claimed: Claimed, received: float) -> None:
        """Take claims over, in their order: they start, or wait for a slot."""
        payload_of = claimed.payloads.get
        attempts = [Attempt.of(claim, payload_of(claim.job_id), received) for claim in claimed.claims]
        self._waiting.extend(self.refusals.wanted(attempts, self.lingering.release))
        if self._draining:
            self._hand_back_unstarted()
            return
        self._fill_slots()
        if self._waiting or self._line:
            self.wake()  # a tick looks after what waits too long, whether it has its payload or not

    def _fill_slots(self) -> None:
        """Start what may start; the service loads the payload of whatever is next and has none."""
        running, waiting, line = self._running, self._waiting, self._line
        while line and len(running) < self._concurrency:
            self._runs(line.begin())
        while waiting and len(running) < self._concurrency and not self._draining:
            payload = waiting[0].payload
            if payload is None:
                self.wake()
                return
            attempt = waiting.popleft()
            self._begin(attempt, payload)
            self._runs(attempt)
        if waiting and len(line) < self._longest_line and not self._draining:
            self._line_up()

    def _line_up(self) -> None:
        """Have bodies ready for threads that are done with others."""
        waiting, line = self._waiting, self._line
        while waiting and len(line) < self._longest_line and (payload := waiting[0].payload) is not None:
            turn = self._runner.turn_for(waiting[0], payload, waiting[0].received + HAND_BACK_AFTER)
            if turn is None:
                self._longest_line = 0  # not asked again before the next claim: most others will be like it
                return
            line.join(waiting[0], turn)
            self._begin(waiting.popleft(), payload)

    def _begin(self, attempt: Attempt, payload: Payload) -> None:
        attempt.read_payload(payload)
        # In a context of its own: a slot is mostly filled by the task of the job before, whose variables are not ours.
        attempt.task = self._loop.create_task(self._attend(attempt, payload), context=self._context.copy())

    def _runs(self, attempt: Attempt) -> None:
        """It has a slot."""
        self._running.add(attempt)
        timeout = self._invoker.timeout_of(attempt)
        if timeout is not None:
            began = None if attempt.turn is None else attempt.turn.began
            self._timeouts.arm(attempt, timeout, 0.0 if began is None else monotonic() - began)

    async def _attend(self, attempt: Attempt, payload: Payload) -> None:
        try:
            await self._runner.run(attempt, payload)
        except BaseException as error:  # noqa: BLE001 - whatever this is, the job must not stay RUNNING
            self._runner.settle(attempt, Raised(error))
            logger.error("job %s: the engine failed to run it (%s)", attempt.claim.job_id, type(error).__name__)
        finally:
            attempt.task = None
            self._free(attempt)
            self.lingering.look_at(attempt)

    def _free(self, attempt: Attempt) -> None:
        if attempt.turn is not None and attempt in self._line:  # ended before the one whose slot it took was heard of
            self._line.remove(attempt)
            self._running.add(attempt)
        if attempt not in self._running:
            return
        self._running.discard(attempt)
        self._timeouts.disarm(attempt)
        self._pace.add()
        if self._waiting or self._line:
            self._fill_slots()
        self.freed.set()
        few_wait = len(self._waiting) + len(self._line) <= self._enough
        if few_wait and self._work.outlook.wants_room and self.room() > 0:
            self._work.slot_freed()

    def _abandon(self, attempt: Attempt) -> None:
        """Its body does not end although it was told to.

        Pass the verdict without it. Whatever it still does is fenced off.
        """
        logger.error(
            "job %s does not end after its timeout; its slot is freed, its body is left alone", attempt.claim.job_id
        )
        error = JobTimeoutError("the job ran over its timeout and ignored being cancelled")
        self._runner.settle(attempt, Raised(error), goes_on=attempt.task is not None)
        self._free(attempt)

    # ------------------------------------------------------------------ payloads

    async def tick(self) -> float | None:
        """Load large payloads for the slots that are free or soon will be."""
        self._hand_back_late()
        room = self._concurrency - len(self._running) + self._ahead(LOAD_AHEAD)
        batch = [attempt for attempt in islice(self._waiting, max(room, 0)) if attempt.payload is None]
        if batch:
            for gone in await payloads.load(self._database, batch):
                if gone in self._waiting:
                    self._waiting.remove(gone)
            self._fill_slots()
        return HAND_BACK_AFTER / 2 if self._waiting or self._line else None

    def _hand_back_late(self) -> None:
        """From the front: those have waited longest."""
        limit = monotonic() - HAND_BACK_AFTER
        for attempt in self._line.withdrawn(before=limit):
            self._hand_back(attempt)
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
        clean = await self._drain.run(timeout)
        self._timeouts.close()
        return clean

    def _give_up(self, attempt: Attempt) -> None:
        """It was stopped and does not end: its job is released without it."""
        self._runner.settle(attempt, HANDED, goes_on=attempt.task is not None)
        self._free(attempt)

    def _hand_back_unstarted(self) -> None:
        for attempt in self._line.withdrawn():
            self._hand_back(attempt)
        while self._line:  # those have begun, and are heard of soon
            self._runs(self._line.begin())
        while self._waiting:
            self._hand_back(self._waiting.popleft())

    def force(self) -> None:
        """Have a drain, under way or to come, wait no longer."""
        self._drain.force()
