"""Slots: which claims run and which wait. Claims that wait too long are released."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.domain.job import Payload
from windlass.domain.transition import released
from windlass.engine.attempt import RELEASED, Attempt, Raised, Stop
from windlass.engine.canceled_jobs import CanceledJobs
from windlass.engine.completer import Completer
from windlass.engine.drain import Drain
from windlass.engine.invoke import Invoker
from windlass.engine.known_work import KnownWork
from windlass.engine.lingering_bodies import LingeringBodies
from windlass.engine.room import Room
from windlass.engine.runner import Runner
from windlass.engine.timeouts import Timeouts, stop
from windlass.engine.waiting_claims import WaitingClaims
from windlass.errors import JobTimeoutError
from windlass.feature import ArgumentSource
from windlass.flow.guards import Guards
from windlass.runtime.error_handling import ErrorHandling
from windlass.runtime.failpoints import reached
from windlass.runtime.service import Service
from windlass.stores.database import Database
from windlass.stores.dialect import Claimed
from windlass.submission.target import Known

logger = loggers.logger("windlass.slots")

RELEASE_AFTER = 1.0
"""Seconds that a claim may wait for a slot before it is released."""


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
        arguments: Sequence[ArgumentSource] = (),
        guards: Guards | None = None,
    ) -> None:
        super().__init__("slots", errors)
        self._runner = runner
        self._invoker = invoker
        self._completer = completer
        self._work = work
        self._concurrency = concurrency
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._running: set[Attempt] = set()
        self._timeouts = Timeouts(self._loop, self._running, self._abandon)
        self._waiting = WaitingClaims(database, arguments, guards)
        self._room = Room(concurrency)
        self.canceled = CanceledJobs()
        """Jobs that were canceled before their claims arrived."""
        self._draining = False
        self._drain = Drain(self._running, self._give_up)
        self.lingering = lingering
        self.freed = asyncio.Event()
        """Set whenever a slot becomes free; a waiter clears it first."""

    # ------------------------------------------------------------------ state for the poller

    @property
    def running(self) -> int:
        """Number of running attempts."""
        return len(self._running)

    @property
    def utilisation(self) -> float:
        """Share of the slots in use."""
        return len(self._running) / self._concurrency

    def running_attempts(self) -> list[Attempt]:
        """Return the attempts in slots. From any thread."""
        return list(self._running)

    @property
    def slots_taken(self) -> int | None:
        """Number of slots, if all of them are in use; else None. From any thread."""
        return self._concurrency if len(self._running) >= self._concurrency else None

    def room(self) -> int:
        """Return how many more jobs the node may claim."""
        if self._draining or self._completer.full:
            return 0
        return self._room.to_claim(len(self._running), len(self._waiting))

    def held(self) -> set[tuple[str, int]]:
        """Return ids and fences of every claim of this node, from its arrival until its outcome is written."""
        claims = [attempt.claim for attempt in self.attempts()]
        return {(claim.job_id, claim.fence) for claim in claims} | self._completer.unwritten

    def attempts(self) -> set[Attempt]:
        """Return everything claimed here whose outcome is not known yet."""
        return {*self._running, *self._waiting}

    def cancel(self, attempt: Attempt) -> None:
        """Stop an attempt whose claim is lost: drop it if it waits, ask it to end if its body has started."""
        if self._waiting.withdraw(attempt):
            attempt.stop = Stop.CANCEL
            self.lingering.release(attempt)
        elif attempt in self._running or attempt in self._waiting.ready:
            stop(attempt, Stop.CANCEL)

    # ------------------------------------------------------------------ arriving claims

    def accept(self, claimed: Claimed, received: float) -> None:
        """Take claims in their order: they start, or wait for a slot."""
        payload_of = self._waiting.complete(claimed.payloads).get
        attempts = [Attempt.of(claim, payload_of(claim.job_id), received) for claim in claimed.claims]
        self._waiting.others.extend(self.canceled.without(attempts, self.lingering.release))
        if self._draining:
            self._release_unstarted()
            return
        self._fill_slots()
        if self._waiting:
            self.wake()  # a tick releases claims that wait too long, with or without payload

    def _fill_slots(self) -> None:
        """Start what may start; the service loads the payload of the next one if it has none."""
        running, ready, waiting = self._running, self._waiting.ready, self._waiting.others
        while ready and len(running) < self._concurrency:
            self._runs(self._waiting.begin())
        while waiting and len(running) < self._concurrency and not self._draining:
            payload = waiting[0].payload
            if payload is None:
                self.wake()
                return
            attempt = waiting.popleft()
            self._begin(attempt, payload)
            self._runs(attempt)
        if waiting and len(ready) < self._room.most_ready and not self._draining:
            self._make_ready()

    def _make_ready(self) -> None:
        """Prepare bodies for threads that have finished others."""
        ready, waiting = self._waiting.ready, self._waiting.others
        while waiting and len(ready) < self._room.most_ready and (payload := waiting[0].payload) is not None:
            known = self._runner.make_ready(waiting[0], payload, waiting[0].received + RELEASE_AFTER)
            if known is None:
                self._room.most_ready = 0  # not tried again before the next claim: most others will be like it
                return
            ready.append(waiting[0])
            self._begin(waiting.popleft(), payload, known)

    def _begin(self, attempt: Attempt, payload: Payload, known: Known | None = None) -> None:
        attempt.read_payload(payload)
        # In a new context: a slot is mostly filled by the task of the previous job, whose variables are not ours.
        attempt.task = self._loop.create_task(self._attend(attempt, payload, known), context=self._context.copy())

    def _runs(self, attempt: Attempt) -> None:
        """Run an attempt that has a slot."""
        self._running.add(attempt)
        timeout = self._invoker.timeout_of(attempt)
        if timeout is not None:
            began = None if attempt.turn is None else attempt.turn.began
            self._timeouts.arm(attempt, timeout, 0.0 if began is None else monotonic() - began)

    async def _attend(self, attempt: Attempt, payload: Payload, known: Known | None) -> None:
        try:
            await self._runner.run(attempt, payload, known)
        except BaseException as error:  # noqa: BLE001 - whatever this is, the job must not stay RUNNING
            self._runner.settle(attempt, Raised(error))
            logger.error("job %s: the engine failed to run it (%s)", attempt.claim.job_id, type(error).__name__)
        finally:
            attempt.task = None
            self._free(attempt)
            self.lingering.look_at(attempt)

    def _free(self, attempt: Attempt) -> None:
        if attempt.turn is not None and attempt in self._waiting.ready:  # it ended before the one whose slot it took
            self._waiting.ready.remove(attempt)
            self._running.add(attempt)
        if attempt not in self._running:
            return
        self._running.discard(attempt)
        self._timeouts.disarm(attempt)
        self._room.pace.add()
        waiting = self._waiting
        if waiting.others or waiting.ready:
            self._fill_slots()
        self.freed.set()
        if self._work.outlook.wants_room and len(waiting) <= self._room.enough and self.room() > 0:
            self._work.slot_freed()

    def _abandon(self, attempt: Attempt) -> None:
        """Make the verdict for a body that does not end although it was stopped.

        Whatever it still does is fenced off.
        """
        logger.error(
            "job %s does not end after its timeout; its slot is freed, its body still runs", attempt.claim.job_id
        )
        error = JobTimeoutError("the job exceeded its timeout and ignored its cancellation")
        self._runner.settle(attempt, Raised(error), goes_on=attempt.task is not None)
        self._free(attempt)

    # ------------------------------------------------------------------ payloads

    async def tick(self) -> float | None:
        """Load large payloads for the slots that are free or soon will be."""
        self._release_late()
        if await self._waiting.load(self._room.to_load(len(self._running))):
            self._fill_slots()
        return RELEASE_AFTER / 2 if self._waiting else None

    def _release_late(self) -> None:
        """From the front: those have waited longest."""
        limit = monotonic() - RELEASE_AFTER
        for attempt in self._waiting.withdraw_ready(before=limit):
            self._release(attempt)
        waiting = self._waiting.others
        while waiting and waiting[0].received < limit and len(self._running) >= self._concurrency:
            self._release(waiting.popleft())

    def _release(self, attempt: Attempt) -> None:
        attempt.transition = released(attempt.claim, attempt.times())
        self._completer.finish(attempt)

    # ------------------------------------------------------------------ drain

    async def drain(self, timeout: float) -> bool:
        """Release what has not started, let the rest finish, then stop it without spending attempts.

        Return True if everything has finished.
        """
        self._draining = True
        for attempt in self._running:
            if attempt.context is not None:
                attempt.context.drain()
        reached("drain.before_release")
        self._release_unstarted()
        began = monotonic()
        clean = await self._drain.run(timeout)
        await self._completer.judged(max(0.0, began + timeout - monotonic()), self._drain.forced)
        self._timeouts.close()
        return clean

    def _give_up(self, attempt: Attempt) -> None:
        """Release the job of an attempt that was stopped and does not end."""
        self._runner.settle(attempt, RELEASED, goes_on=attempt.task is not None)
        self._free(attempt)

    def _release_unstarted(self) -> None:
        for attempt in self._waiting.withdraw_ready():
            self._release(attempt)
        while self._waiting.ready:  # those have started, and will end in slots
            self._runs(self._waiting.begin())
        while self._waiting.others:
            self._release(self._waiting.others.popleft())

    def force(self) -> None:
        """Make a drain, current or future, stop waiting."""
        self._drain.force()
