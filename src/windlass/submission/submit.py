"""Group commit: callers that enqueue at the same moment share a transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

from windlass.domain.job import Conflict, NewJob, Placed
from windlass.errors import DuplicateBusinessKeyError, StoreUnavailableError
from windlass.runtime.failpoints import reached
from windlass.runtime.forks import after_fork
from windlass.stores.database import Database, StoreDataError
from windlass.stores.notifier import Notifier
from windlass.stores.plans import jobs

MOST_UNITS = 200

Unit = Sequence[NewJob]
Answer = list[Placed] | Conflict


class Inline(Protocol):
    """Runs what was just stored, before `enqueue` returns: a test's way to do without a worker."""

    uncommitted: bool
    """Whether jobs were stored in transactions of the test's own, which are there once it has committed."""

    def run(self) -> None:
        """Run what is due."""

    async def arun(self) -> None:
        """Async twin of `run`."""


def settled(answer: Answer) -> list[Placed]:
    """The answer of the store, or the error it means."""
    if isinstance(answer, Conflict):
        raise DuplicateBusinessKeyError(answer.key, UUID(answer.holder))
    return answer


class _Ticket:
    """A caller's unit, waiting for a transaction to take it along."""

    __slots__ = ("answer", "bell", "error", "leads", "unit")

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.bell = threading.Event()
        self.leads = False
        self.answer: Answer | None = None
        self.error: BaseException | None = None


class Submitter:
    """Stores units. The first caller leads: it takes along whoever comes while it waits for the store."""

    def __init__(self, database: Database, work: Notifier | None) -> None:
        self._commits = _Commits(database, work)
        self._begin()
        after_fork(self._begin)

    def _begin(self) -> None:
        """Nobody leads, nobody waits: also right after a fork, where whoever did stayed with the parent."""
        self._lock = threading.Lock()
        self._queue: list[_Ticket] = []
        self._led = False
        self._loops: dict[asyncio.AbstractEventLoop, _LoopSubmitter] = {}

    def submit(self, unit: Unit) -> list[Placed]:
        """Store a unit and block until it is committed."""
        ticket = _Ticket(unit)
        with self._lock:
            self._queue.append(ticket)
            ticket.leads = not self._led
            self._led = True
        try:
            if not ticket.leads:
                ticket.bell.wait()
        except BaseException:  # an interrupt: whoever gives up must neither keep the lead nor be handed it
            self._withdraw(ticket)
            raise
        if ticket.leads:
            self._lead()
        if ticket.error is not None:
            raise ticket.error
        assert ticket.answer is not None
        return settled(ticket.answer)

    def _withdraw(self, ticket: _Ticket) -> None:
        with self._lock:
            if ticket in self._queue:
                self._queue.remove(ticket)
            leads = ticket.leads
        if leads:
            self._lead()

    def _lead(self) -> None:
        """Commit what has gathered, then hand the lead to the first who came meanwhile."""
        with self._lock:
            tickets, self._queue = self._queue[:MOST_UNITS], self._queue[MOST_UNITS:]
        try:
            self._commit(tickets)
        finally:
            with self._lock:
                following = self._queue[0] if self._queue else None
                self._led = following is not None
                if following is not None:
                    following.leads = True
            for ticket in tickets:
                ticket.bell.set()
            if following is not None:
                following.bell.set()

    def _commit(self, tickets: Sequence[_Ticket]) -> None:
        try:
            answers = self._commits.run([ticket.unit for ticket in tickets])
        except StoreDataError as error:
            if len(tickets) == 1:
                tickets[0].error = error
                return
            for ticket in tickets:  # one of them has values the database refuses; the others must not suffer
                self._commit([ticket])
            return
        except Exception as error:  # noqa: BLE001 - raised again by every caller it concerns
            for ticket in tickets:
                ticket.error = error
            return
        except BaseException:  # an interrupt of the caller that leads: the others cannot know what became of their jobs
            interrupted = "the caller that stored this job along with its own was interrupted"
            for ticket in tickets:
                ticket.error = StoreUnavailableError(interrupted)
            raise
        for ticket, answer in zip(tickets, answers, strict=True):
            ticket.answer = answer

    async def asubmit(self, unit: Unit) -> list[Placed]:
        """Store a unit from the running loop."""
        loop = asyncio.get_running_loop()
        submitter = self._loops.get(loop)
        if submitter is None:
            self._loops = {known: value for known, value in self._loops.items() if not known.is_closed()}
            submitter = self._loops[loop] = _LoopSubmitter(self._commits.arun)
        return settled(await submitter.submit(unit))


class _LoopSubmitter:
    """Group commit for the tasks of one loop."""

    def __init__(self, commit: Callable[[Sequence[Unit]], Awaitable[list[Answer]]]) -> None:
        self._commit = commit
        self._queue: list[tuple[Unit, asyncio.Future[Answer]]] = []
        self._busy = False
        self._following: asyncio.Task[None] | None = None

    async def submit(self, unit: Unit) -> Answer:
        """Commit directly if nobody else is at it; those who come meanwhile follow together."""
        if self._busy:
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            self._queue.append((unit, future))
            return await future
        self._busy = True
        try:
            return (await self._commit([unit]))[0]
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Those who were just answered may have more: they get their turn before the next transaction is filled."""
        if self._queue:
            asyncio.get_running_loop().call_soon(self._follow)
        else:
            self._busy = False

    def _follow(self) -> None:
        batch, self._queue = self._queue[:MOST_UNITS], self._queue[MOST_UNITS:]
        self._busy = bool(batch)
        if batch:
            self._following = asyncio.ensure_future(self._commit_all(batch))

    async def _commit_all(self, batch: Sequence[tuple[Unit, asyncio.Future[Answer]]]) -> None:
        try:
            answers: Sequence[Answer | BaseException] = await self._commit([unit for unit, _ in batch])
        except StoreDataError:
            answers = [await self._one(unit) for unit, _ in batch]
        except BaseException as error:  # noqa: BLE001 - raised again by every caller it concerns
            answers = [error] * len(batch)
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        asyncio.get_running_loop().call_soon(self._follow)

    async def _one(self, unit: Unit) -> Answer | BaseException:
        try:
            return (await self._commit([unit]))[0]
        except Exception as error:  # noqa: BLE001 - raised again by the caller it concerns
            return error


class _Commits:
    """One transaction for several units, and the wakeup of other processes: in it if it is time for one, else after."""

    def __init__(self, database: Database, work: Notifier | None) -> None:
        self._database = database
        self._work = work

    def run(self, units: Sequence[Unit]) -> list[Answer]:
        new, words, tell = self._prepare(units)
        try:
            answers = self._database.run(jobs.submit, units, new, tell)
        except BaseException:
            self._not_told(tell)
            raise
        reached("submit.after_commit")
        self._database.known_queues.update(new)
        if self._work is not None and tell is None:
            self._work.tell(words)
        return answers

    async def arun(self, units: Sequence[Unit]) -> list[Answer]:
        new, words, tell = self._prepare(units)
        try:
            answers = await self._database.arun(jobs.submit, units, new, tell)
        except BaseException:
            self._not_told(tell)
            raise
        reached("submit.after_commit")
        self._database.known_queues.update(new)
        if self._work is not None and tell is None:
            await self._work.atell(words)
        return answers

    def _not_told(self, tell: str | None) -> None:
        if self._work is not None and tell is not None:
            self._work.owe(tell)

    def _prepare(self, units: Sequence[Unit]) -> tuple[list[str], list[str], str | None]:
        levels = levels_of(rows := [job for unit in units for job in unit])
        words, keyed = words_for(levels), any(job.idempotency_key or job.business_key for job in rows)
        # A commit with keys may wait for somebody's lock, or store nothing: it carries no wakeup, least of all others'.
        tell = None if self._work is None or keyed else self._work.with_commit(words)
        return new_queues(self._database, levels), words, tell


def new_queues(database: Database, levels: Sequence[tuple[str, int]]) -> list[str]:
    """Queues that this process has not seen stored yet."""
    return sorted({queue for queue, _ in levels} - database.known_queues)


def levels_of(rows: Sequence[NewJob]) -> list[tuple[str, int]]:
    """The queues and priority levels that have new work."""
    return sorted({(row.queue, row.priority) for row in rows})


def words_for(work: Sequence[tuple[str, int]]) -> list[str]:
    """The same as words of a notification."""
    return [f"{queue}:{level}" for queue, level in work]
