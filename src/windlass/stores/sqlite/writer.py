"""The one writer thread of a SQLite database.

Plans that wait together share a transaction and its fsync (group commit).
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

from windlass.domain.clock import monotonic
from windlass.errors import StoreStatementError, StoreUnavailableError
from windlass.runtime.failpoints import reached
from windlass.stores.database import MOST_RESTARTS, StoreDataError
from windlass.stores.plan import RestartPlanError
from windlass.stores.sqlite import files
from windlass.stores.sqlite.files import Checkpoints, WriteLock, connect, is_locked, is_unavailable, unavailable
from windlass.stores.sqlite.forks import FORK_GATE, never_close_in_child
from windlass.stores.sqlite.location import Location
from windlass.stores.sqlite.lock_holders import holder_of
from windlass.stores.sqlite.session import Session

MOST_IN_A_COMMIT = 128
RETRY_PAUSE = 0.05
"""Seconds before a lock is requested again where SQLite does not wait itself: when a file is switched to WAL."""


class Work:
    """An action to run in a transaction, and the future of its caller."""

    __slots__ = ("_begun", "action", "answer")

    def __init__(self, action: Callable[[Session], Any]) -> None:
        self.action = action
        self.answer: Future[Any] = Future()
        self._begun = False

    def begin(self) -> bool:
        """Return whether the caller still waits; from now on it cannot give up."""
        if not self._begun:
            self._begun = self.answer.set_running_or_notify_cancel()
        return self._begun


class Writer:
    """Runs work in the order given. Work that fails is rolled back alone; the rest of its transaction is kept.

    A caller gives up after `LOCK_DEADLINE` if its work has not begun by then, whatever delayed it: work before it, the
    lock file, or SQLite's own lock. The thread itself waits as long as there is work.
    """

    def __init__(self, location: Location, synchronous: str, now: Callable[[], int]) -> None:
        self._location = location
        self._synchronous = synchronous
        self._now = now
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._lock: WriteLock | None = None
        self._session: Session | None = None
        self._checkpoints: Checkpoints | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._writing = False
        self._closed = False
        self._last: Sequence[Session] = ()

    # ------------------------------------------------------------------ callers

    def run(self, action: Callable[[Session], Any]) -> Any:
        """Run work and block until it is committed."""
        future = self._submit(action)
        try:
            return future.result(None if self._location.in_memory else files.LOCK_DEADLINE)
        except TimeoutError:
            if future.cancel():
                raise self._locked() from None
            return future.result()  # it has begun, or raised this itself

    async def arun(self, action: Callable[[Session], Any]) -> Any:
        """Run work and await its commit."""
        future = self._submit(action)
        if self._location.in_memory:
            return await asyncio.wrap_future(future)
        given_up = False

        def give_up() -> None:
            nonlocal given_up
            given_up = future.cancel()

        timer = asyncio.get_running_loop().call_later(files.LOCK_DEADLINE, give_up)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not given_up or (task is not None and task.cancelling()):
                raise
            raise self._locked() from None
        finally:
            timer.cancel()

    def _submit(self, action: Callable[[Session], Any]) -> Future[Any]:
        if self._closed:
            raise StoreUnavailableError(f"SQLite database {self._location.path}: this application was closed")
        work = Work(action)
        self._start()
        self._queue.put(work)
        return work.answer

    def _start(self) -> None:
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._loop, name="windlass-sqlite-writer", daemon=True)
                    self._thread.start()

    def _locked(self) -> StoreUnavailableError:
        path = self._location.path
        holder = holder_of(path, own_writer_writes=self._writing)
        return StoreUnavailableError(
            f"SQLite database {path}: it is locked by {holder} (waited {files.LOCK_DEADLINE:g} s)"
        )

    def close(self, readers: Sequence[Session] = ()) -> None:
        """Finish queued work, then close these connections and the writer's own, under the lock.

        The last connection to close makes a checkpoint. If the lock is not free within the deadline of an operation,
        the thread closes them later, or the process ends first.
        """
        self._closed = True
        self._last = readers
        if readers:
            self._start()
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join(None if self._location.in_memory else files.LOCK_DEADLINE)

    def never_close_in_child(self) -> None:
        """Abandon the parent's connections in a forked child.

        Only the lock files are closed, which otherwise would stay locked after the parent's death.
        """
        never_close_in_child(self, self._session)
        if self._lock is not None:
            self._lock.close()

    # ------------------------------------------------------------------ the thread

    def _loop(self) -> None:
        while True:
            first = self._queue.get()
            works = [first] if first is not None else []
            closing = first is None
            with contextlib.suppress(Empty):
                while len(works) < MOST_IN_A_COMMIT and not closing:
                    work = self._queue.get_nowait()
                    closing = work is None
                    if work is not None:
                        works.append(work)
            while works := [work for work in works if not work.answer.done()]:
                if not self._commit(works):
                    threading.Event().wait(RETRY_PAUSE)
            if closing:
                self._close_connections()
                return

    def _commit(self, works: list[Work]) -> bool:
        """Set the outcomes of works; return False if SQLite is locked and the caller must repeat this."""
        outcomes: list[tuple[bool, Any]] = []
        try:
            with self._turn(), FORK_GATE:
                self._location.check()
                works, outcomes = self._transaction(works)
                if self._checkpoints is not None:
                    self._checkpoints.after_commit()
        except Exception as error:  # noqa: BLE001 - every waiting caller gets it
            if is_locked(error) and not self._writing:
                return False
            works = [work for work in works if work.begin()]
            if len(works) > 1 and not outcomes:
                for work in works:
                    self._commit_alone(work)
                return True
            if not outcomes:
                outcomes = [(False, self._translate(error))] * len(works)
        finally:
            self._writing = False
        for work, (fine, value) in zip(works, outcomes, strict=True):
            if fine:
                work.answer.set_result(value)
            else:
                work.answer.set_exception(value)
        return True

    def _commit_alone(self, work: Work) -> None:
        """Commit work that has begun, and so is not given up by its caller."""
        ends_at = monotonic() + files.LOCK_DEADLINE
        while not self._commit([work]):
            if monotonic() > ends_at:
                work.answer.set_exception(self._locked())
                return
            threading.Event().wait(RETRY_PAUSE)

    @contextlib.contextmanager
    def _turn(self, *, create: bool = True) -> Iterator[None]:
        """Hold the lock file, if there is one: a database in memory has none."""
        if self._location.in_memory:
            yield
            return
        if self._lock is None:
            self._lock = WriteLock(self._location.path)
        with self._lock.held(create=create):
            yield

    def _transaction(self, works: list[Work]) -> tuple[list[Work], list[tuple[bool, Any]]]:
        session = self._connected()
        connection = session.connection
        connection.execute("BEGIN IMMEDIATE")
        self._writing = True
        try:
            works = [work for work in works if work.begin()]
            outcomes = [self._attempt(session, work) for work in works]
            reached("store.before_commit")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        reached("store.after_commit")
        return works, outcomes

    def _attempt(self, session: Session, work: Work) -> tuple[bool, Any]:
        """Run one piece of work inside the open transaction, rolled back alone if it fails."""
        connection = session.connection
        for restart in range(MOST_RESTARTS):
            connection.execute("SAVEPOINT work")
            try:
                value = work.action(session)
            except Exception as error:
                if not connection.in_transaction:
                    raise  # SQLite itself rolled back the whole transaction (disk full)
                connection.execute("ROLLBACK TO work")
                connection.execute("RELEASE work")
                if isinstance(error, RestartPlanError) and restart + 1 < MOST_RESTARTS:
                    continue
                return False, self._translate(error)
            connection.execute("RELEASE work")
            return True, value
        raise AssertionError("unreachable")

    def _connected(self) -> Session:
        if self._session is None:
            connection = connect(self._location.path, self._synchronous, self._now)
            if not self._location.in_memory:
                self._location.opened()
                self._checkpoints = Checkpoints(connection, self._location.path)
            self._session = Session.of_writer(connection)
        return self._session

    def _close_connections(self) -> None:
        last = [*self._last, *([self._session] if self._session is not None else ())]
        if last:
            with self._turn(create=False), FORK_GATE:
                for session in last:
                    session.connection.close()
        self._session = None
        if self._lock is not None:
            self._lock.close()

    def _translate(self, error: Exception) -> Exception:
        return translate(self._location, error)


def translate(location: Location, error: Exception) -> Exception:
    """Convert a driver's error to one of ours."""
    if isinstance(error, sqlite3.Error) and is_unavailable(error):
        try:
            location.check()  # a file that is lost during an operation is reported by SQLite as a fault of the disk
        except StoreUnavailableError as loss:
            return loss
        return unavailable(location.path, error)
    refused = sqlite3.IntegrityError | sqlite3.DataError | sqlite3.InterfaceError | OverflowError | UnicodeError
    # A trigger's refusal does not concern the values, though SQLite reports it as a broken constraint.
    by_trigger = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CONSTRAINT_TRIGGER
    if isinstance(error, refused) and not by_trigger:
        return StoreDataError(str(error))
    if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.ProgrammingError):
        return StoreStatementError(
            f"SQLite database {location.path} refuses a statement: {error}; "
            "its tables are not as Windlass creates them: they were changed, or have a trigger"
        )
    return error
