"""Writes transitions: attempts that end together share a commit, each guarded by its own fence; then publishes.

A flush starts as soon as the previous one has ended, so that a single job is not delayed by a timer, and batches grow
by themselves under load. Follow-ups (writes that belong to a job's end, in the same transaction) are registered by
features; the engine knows none of them.

A row that the database refuses is isolated by splitting the flush. If its values are the cause, its job fails; if not
(rights, schema, a trigger), the outcome is set aside and retried, and the others are written meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from windlass import loggers
from windlass.domain.ended import NO_EFFECTS, Effects, Ended
from windlass.domain.states import JobStatus
from windlass.domain.transition import Failure, dead_letter
from windlass.engine.attempt import Attempt
from windlass.engine.damage import pause_damaged
from windlass.engine.judgings import Judgings
from windlass.engine.outcomes import followed
from windlass.engine.set_aside import SetAside
from windlass.errors import StoreStatementError
from windlass.runtime.error_handling import ErrorHandling, described
from windlass.runtime.failpoints import reached
from windlass.runtime.service import Service
from windlass.stores.database import Database, StoreDataError
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, end
from windlass.stores.plan import Plan
from windlass.stores.plans import jobs

logger = loggers.logger("windlass.completer")

MAX_IN_A_FLUSH = 1000
WORTH_A_COMMIT = 64
GATHER = 0.003
"""Seconds to wait for more outcomes after a small commit of several; a single job is never delayed by this."""
BACKLOG = 5_000
"""Number of transitions that may wait to be written; beyond that no job is claimed."""
MAX_SPLITS = 64
"""Number of refused statements after which a flush is not split further: finds six bad outcomes in a thousand."""


class FlushPublisher(Protocol):
    """What is called after each commit."""

    def publish(self, batch: Sequence[Attempt], effects: Effects) -> None:
        """Publish attempts whose outcome is committed, in order."""

    def lost_track(self) -> None:
        """Handle a committed flush whose effects are unknown because its answer was lost."""


class Seams(NamedTuple):
    """Hooks around a flush."""

    before: Callable[[Sequence[Attempt]], Awaitable[None] | None] = lambda batch: None
    """Called with the batch before it is written; returns what to await first."""
    settled: Callable[[Attempt], None] = lambda attempt: None
    """Called after the commit with an attempt whose body still runs and keeps its permits, or that came too late."""


class Written(NamedTuple):
    """The result of a flush."""

    won: list[bool]
    effects: Effects = NO_EFFECTS
    repeated: bool = False
    """Whether an earlier try had committed part of it, whose effects are unknown."""


class Completer(Service):
    """One flush after the other, on the loop."""

    def __init__(
        self,
        database: Database,
        publisher: FlushPublisher,
        errors: ErrorHandling,
        *,
        follow_ups: FollowUps = (),
        seams: Seams | None = None,
        largest_flush: int = MAX_IN_A_FLUSH,
    ) -> None:
        super().__init__("completer", errors)
        self._database = database
        self._follow_ups = follow_ups
        self._publisher = publisher
        self._seams = seams or Seams()
        self._most = largest_flush
        self._worth_a_commit = min(WORTH_A_COMMIT, largest_flush)
        self._waiting: deque[Attempt] = deque()
        self._unsure = False
        self._judgings = Judgings(self.finish)
        self._set_aside = SetAside(lambda text: errors.keep("outcomes", text))
        self._splits = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.stale = 0
        """Writes refused by their fence since the start."""

    @property
    def full(self) -> bool:
        """Whether so many outcomes wait to be written that no more jobs should be claimed."""
        return len(self._waiting) + len(self._set_aside) + len(self._judgings) >= BACKLOG

    @property
    def unwritten(self) -> set[tuple[str, int]]:
        """Ids and fences of attempts that are still to be written, also of those whose branches are being judged."""
        attempts = (*self._waiting, *self._set_aside, *self._judgings)
        return {(attempt.claim.job_id, attempt.claim.fence) for attempt in attempts}

    def finish(self, attempt: Attempt) -> None:
        """Take an attempt with its transition; it is written soon, or as soon as the store is back."""
        self._waiting.append(attempt)
        if self._idle.is_set():
            self._idle.clear()
            self.wake()

    def finish_after(self, attempt: Attempt, judging: Coroutine[object, object, None]) -> None:
        """Take an attempt with its transition, to be written once its branches are judged."""
        self._judgings.begin(attempt, judging)

    async def judged(self, timeout: float, forced: asyncio.Event) -> None:
        """Wait until all branches are judged; cancel the rest after `timeout`, or if `forced` is set."""
        await self._judgings.cut_off(timeout, forced)

    async def flushed(self) -> bool:
        """Wait until everything is judged, and written or refused once more; return whether everything is written."""
        await self._judgings.wait()
        if self._set_aside:
            self._set_aside.hurry()
            self._idle.clear()
            self.wake()
        await self._idle.wait()
        return not self._set_aside

    async def tick(self) -> float | None:
        """Write the next batch; retried outcomes get their own, so that they do not delay the others."""
        # Not while a commit is in doubt: a successful flush of other outcomes would end that state wrongly.
        again = [] if self._unsure and self._waiting else self._set_aside.take(self._most)
        if again:
            self._idle.clear()
            self._waiting.extendleft(reversed(again))
            self._unsure = self._unsure or self._set_aside.unsure
        batch = again or list(islice(self._waiting, self._most))
        if not batch:
            self._idle.set()
            return self._set_aside.due_in()
        first = self._seams.before(batch)
        if first is not None:
            await first
        aside, self._splits = len(self._set_aside), MAX_SPLITS
        await self._write(batch, unsure=self._unsure)
        if again:
            self._set_aside.tried(written=len(again) - (len(self._set_aside) - aside))
        self._set_aside.settle()
        enough = self._worth_a_commit
        return GATHER if 1 < len(batch) < enough and len(self._waiting) < enough else 0

    async def _write(self, batch: list[Attempt], *, unsure: bool) -> None:
        """Write a batch; split it while the database refuses it, until the bad row is alone."""
        ended = followed(batch, self._follow_ups)
        try:
            written = await self._database.arun(_apply, batch, ended, self._follow_ups, retried=unsure)
        except (StoreDataError, StoreStatementError) as error:
            await self._split(batch, error, unsure=unsure)
            return
        except BaseException:
            self._unsure = True  # the commit may have happened: the next flush checks before it writes
            raise
        self._unsure = False
        reached("completer.after_commit")
        reached("retry.after_commit", lambda: _retries(batch))
        reached("dead_letter.after_commit", lambda: _dies(batch))
        self._forget(batch)
        winners = batch if all(written.won) else self._winners(batch, written.won)
        for attempt in winners:
            if attempt.lingers:
                self._seams.settled(attempt)
        if winners:
            self._publisher.publish(winners, written.effects)
        if written.repeated:
            self._publisher.lost_track()

    async def _split(self, batch: list[Attempt], error: StoreDataError | StoreStatementError, *, unsure: bool) -> None:
        """Write the halves of a refused batch; a single outcome fails or is set aside."""
        if isinstance(error, StoreDataError) and len(batch) == 1:
            try:
                await self._write_poison(batch[0], error)
            except (StoreDataError, StoreStatementError) as refused:
                self._keep(batch, refused, unsure=unsure)
            except BaseException:
                self._unsure = True
                raise
            return
        if isinstance(error, StoreStatementError):
            if len(batch) == 1 or self._splits == 0:
                self._keep(batch, error, unsure=unsure)
                return
            self._splits -= 1
        middle = len(batch) // 2
        await self._write(batch[:middle], unsure=unsure)
        await self._write(batch[middle:], unsure=unsure)

    def _keep(self, batch: list[Attempt], error: StoreDataError | StoreStatementError, *, unsure: bool) -> None:
        self._forget(batch)
        self._set_aside.add(batch, described(self._errors, error), unsure=unsure)

    def _forget(self, batch: Sequence[Attempt]) -> None:
        """Remove written parts: they must not be tried again when the rest of a split batch fails."""
        for _ in batch:
            self._waiting.popleft()

    def _winners(self, batch: Sequence[Attempt], won: Sequence[bool]) -> list[Attempt]:
        for attempt, fine in zip(batch, won, strict=True):
            if not fine:
                self.stale += 1
                self._seams.settled(attempt)
                logger.warning(
                    "job %s: the outcome %r came too late and was refused; "
                    "another claim, a recovery or a cancel was first",
                    attempt.claim.job_id,
                    attempt.verdict.outcome,
                )
        return [attempt for attempt, fine in zip(batch, won, strict=True) if fine]

    async def _write_poison(self, attempt: Attempt, error: StoreDataError) -> None:
        """Fail a job whose outcome the database refuses, with an error that it accepts."""
        claim, refused = attempt.claim, attempt.verdict
        if attempt.payload is None or refused.reason == "poison_payload":
            await pause_damaged(self._database, claim, str(error))
            self._forget([attempt])
            return
        failure = Failure("StoreDataError: the database refused what this job would store", "StoreDataError")
        times = refused.times._replace(wait_us=None)  # it may have been the refused value
        poison = dead_letter(claim, times, failure, "poison_payload", holds_key=attempt.holds_key)
        attempt.transition = poison._replace(lingers=refused.lingers)
        attempt.judgements = None  # of another outcome: its branches are judged when they begin
        await self._write([attempt], unsure=False)


def _apply(
    dialect: Dialect, batch: Sequence[Attempt], ended: Mapping[int, Ended], follow_ups: FollowUps, *, retried: bool
) -> Plan[Written]:
    """Write a flush: its transitions, and the follow-ups of those with `ended` values, by their index."""
    reached("completer.before_write")
    transitions = [transition for attempt in batch if (transition := attempt.transition) is not None]
    # Transitions committed by an earlier try have their follow-ups: they were in the same transaction.
    done = (yield from dialect.applied(transitions)) if retried and ended else [False] * len(batch)
    won = yield from jobs.apply(dialect, transitions, retried=retried, alone=not ended)
    reached("completer.written")
    fresh = [job for index, job in ended.items() if won[index] and not done[index]]
    effects = (yield from end(dialect, fresh, follow_ups)) if fresh else NO_EFFECTS
    reached("completer.before_commit")
    reached("retry.before_commit", lambda: _retries(batch))
    reached("dead_letter.before_commit", lambda: _dies(batch))
    return Written(won, effects, repeated=any(done))


def _retries(batch: Sequence[Attempt]) -> bool:
    return any(attempt.verdict.outcome == "retried" for attempt in batch)


def _dies(batch: Sequence[Attempt]) -> bool:
    return any(attempt.verdict.status is JobStatus.FAILED for attempt in batch)
