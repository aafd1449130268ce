"""Callers that write at the same moment share a transaction.

The first caller leads: while it waits for its turn at the store, others add their units, which it commits together with
its own. Then it passes the lead to the first caller that came meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from inspect import GEN_CREATED, getgeneratorstate
from typing import Any, Final, Generic, NamedTuple, TypeVar

from windlass.errors import StoreUnavailableError
from windlass.runtime.forks import after_fork
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.database import StoreDataError

U = TypeVar("U")
"""What one caller stores."""
A = TypeVar("A")
"""What it is answered."""

MAX_UNITS: Final = 200


class Signals(NamedTuple):
    """How callers of one kind wait, and are resumed."""

    make: Callable[[], Any]
    set: Callable[[Any], None]


THREADS: Final = Signals(threading.Event, threading.Event.set)


def tasks_of(loop: asyncio.AbstractEventLoop) -> Signals:
    """Return the signals for tasks of a loop: futures."""
    return Signals(loop.create_future, _set)


class _Ticket(Generic[U, A]):
    """A caller's unit that waits for a transaction."""

    __slots__ = ("answer", "error", "leads", "signal", "unit")

    def __init__(self, unit: U) -> None:
        self.unit = unit
        self.signal: Any = None
        """Set when it is answered, or leads; None if it leads from the start."""
        self.leads = False
        self.answer: A | None = None
        self.error: BaseException | None = None


class CallerGroup(Generic[U, A]):
    """Callers of which one leads at a time: the threads of a process, or the tasks of an event loop."""

    def __init__(self, commit: Callable[[Sequence[U]], Verb[list[A]]], signals: Signals) -> None:
        self._commit = commit
        self._signals = signals
        self._lock = threading.Lock()
        self._queue: list[_Ticket[U, A]] = []
        """The first caller in it leads."""
        self._led = False
        self._shared = False
        """Whether the last commit was shared by several callers, which may be back at once."""
        self._leading: set[asyncio.Task[None]] = set()

    def submit(self, unit: U) -> Verb[A]:
        """Lead, or wait for the leading caller."""
        ticket = _Ticket[U, A](unit)
        with self._lock:
            self._queue.append(ticket)
            if self._led:
                ticket.signal = self._signals.make()
            else:
                self._led = ticket.leads = True
        try:
            if ticket.signal is not None:
                yield _wait_for, _itself, (ticket.signal,)
            elif self._shared:  # callers answered together with this one get to run on the loop
                yield _no_wait, asyncio.sleep, (0,)
        except BaseException:  # an interrupt: a caller that gives up must neither keep the lead nor be handed it
            self._withdraw(ticket)
            raise
        if ticket.leads and len(self._queue) > 1:
            yield drive, self._apart, (self._lead(),)
        elif ticket.leads:
            yield from self._lead()
        if ticket.error is not None:
            raise ticket.error
        assert ticket.answer is not None
        return ticket.answer

    def _withdraw(self, ticket: _Ticket[U, A]) -> None:
        with self._lock:
            if ticket in self._queue:
                self._queue.remove(ticket)
        if ticket.leads:
            self._pass_on()

    def _lead(self) -> Verb[None]:
        """Commit the gathered units, then pass the lead to the first caller that came meanwhile."""
        with self._lock:
            tickets, self._queue = self._queue[:MAX_UNITS], self._queue[MAX_UNITS:]
        self._shared = len(tickets) > 1
        try:
            yield from self._commit_tickets(tickets)
        finally:
            self._pass_on(tickets)

    async def _apart(self, verb: Verb[None]) -> None:
        """Run it as a separate task: cancelling the leading caller must not give up others' jobs."""
        task = asyncio.ensure_future(adrive(verb))
        self._leading.add(task)
        task.add_done_callback(lambda done: self._led_apart(done, verb))
        await asyncio.shield(task)

    def _led_apart(self, task: asyncio.Task[None], verb: Verb[None]) -> None:
        self._leading.discard(task)
        if getgeneratorstate(verb) != GEN_CREATED:
            return
        # The task was cancelled before its first step, and with it the caller that waits for it.
        with self._lock:
            del self._queue[0]
        self._pass_on()

    def _pass_on(self, answered: Sequence[_Ticket[U, A]] = ()) -> None:
        with self._lock:
            following = self._queue[0] if self._queue else None
            self._led = following is not None
            if following is not None:
                following.leads = True
        for ticket in (*answered, *(() if following is None else (following,))):
            if ticket.signal is not None:
                self._signals.set(ticket.signal)

    def _commit_tickets(self, tickets: Sequence[_Ticket[U, A]]) -> Verb[None]:
        try:
            answers = yield from self._commit([ticket.unit for ticket in tickets])
        except StoreDataError as error:
            if len(tickets) == 1:
                tickets[0].error = error
                return
            for ticket in tickets:  # one of them has values the database refuses; the others must not suffer
                yield from self._commit_tickets([ticket])
        except Exception as error:  # noqa: BLE001 - raised again by every caller it concerns
            for ticket in tickets:
                ticket.error = error
        except BaseException:  # an interrupt of the caller that leads: the others cannot know what became of their jobs
            interrupted = "the caller that stored this job along with its own was interrupted"
            for ticket in tickets:
                ticket.error = StoreUnavailableError(interrupted)
            raise
        else:
            for ticket, answer in zip(tickets, answers, strict=True):
                ticket.answer = answer


def _wait_for(signal: threading.Event) -> None:
    signal.wait()


def _itself(signal: asyncio.Future[None]) -> asyncio.Future[None]:
    return signal


def _set(signal: asyncio.Future[None]) -> None:
    if not signal.done():  # else its caller was cancelled
        signal.set_result(None)


def _no_wait(seconds: float) -> None:
    """Resume a thread at once: other threads run anyway."""


class CallerGroups(Generic[U, A]):
    """Groups of callers: the threads form one, and the tasks of each event loop another.

    What blocks one group does not block the others.
    """

    def __init__(self, commit: Callable[[Sequence[U]], Verb[list[A]]]) -> None:
        self._commit = commit
        self._begin()
        after_fork(self._begin)

    def _begin(self) -> None:
        """Start without callers; also after a fork, where the parent's callers do not exist."""
        self._threads = CallerGroup(self._commit, THREADS)
        self._loops: dict[asyncio.AbstractEventLoop, CallerGroup[U, A]] = {}

    def submit(self, unit: U) -> Verb[A]:
        """Store a unit; return when it is committed."""
        group: CallerGroup[U, A] = yield self._group_of_threads, self._group_of_loop, ()
        return (yield from group.submit(unit))

    def _group_of_threads(self) -> CallerGroup[U, A]:
        return self._threads

    async def _group_of_loop(self) -> CallerGroup[U, A]:
        loop = asyncio.get_running_loop()
        group = self._loops.get(loop)
        if group is None:
            self._loops = {known: value for known, value in list(self._loops.items()) if not known.is_closed()}
            group = self._loops[loop] = CallerGroup(self._commit, tasks_of(loop))
        return group
