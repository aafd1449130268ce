"""The one writer thread of a SQLite database.

Plans that wait together share a transaction and its fsync (group commit).
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from windlass.errors import StoreUnavailableError
from windlass.runtime.failpoints import reached
from windlass.stores.database import MOST_RESTARTS, StoreDataError
from windlass.stores.dialects.sqlite_files import Checkpoints, WriteLock, connect, is_unavailable, unavailable
from windlass.stores.dialects.sqlite_forks import FORK_GATE, leave_to_the_parent
from windlass.stores.dialects.sqlite_session import Session
from windlass.stores.plan import RestartPlanError

MOST_IN_A_COMMIT = 128


class Work(NamedTuple):
    """Something to do in a transaction, and who waits for it."""

    action: Callable[[Session], Any]
    answer: Future[Any]


class Writer:
    """Runs work in the order given. Work that fails is undone alone; the rest of its transaction stands."""

    def __init__(self, path: str, synchronous: str, now: Callable[[], int]) -> None:
        self._path = path
        self._synchronous = synchronous
        self._now = now
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._lock = WriteLock(path) if path != ":memory:" else None
        self._session: Session | None = None
        self._checkpoints: Checkpoints | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False

    def submit(self, action: Callable[[Session], Any]) -> Future[Any]:
        """Queue work; its future is set once it is committed."""
        if self._closed:
            raise StoreUnavailableError(f"SQLite database {self._path}: this application was closed")
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._loop, name="windlass-sqlite-writer", daemon=True)
                    self._thread.start()
        answer: Future[Any] = Future()
        self._queue.put(Work(action, answer))
        return answer

    def close(self) -> None:
        """Finish what is queued, then close the connection under the lock (the last one to close checkpoints)."""
        self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        if self._lock is not None:
            self._lock.close()

    def leave_to_the_parent(self) -> None:
        """In a forked child: touch nothing, but let go of the lock files, or a killed parent would hold them on."""
        leave_to_the_parent(self, self._session)
        if self._lock is not None:
            self._lock.close()

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
            works = [work for work in works if work.answer.set_running_or_notify_cancel()]
            if works:
                self._commit(works)
            if closing:
                self._close_connection()
                return

    def _commit(self, works: list[Work]) -> None:
        outcomes: list[tuple[bool, Any]] = []
        try:
            with self._lock.held() if self._lock is not None else contextlib.nullcontext(), FORK_GATE:
                outcomes = self._transaction(works)
                if self._checkpoints is not None:
                    self._checkpoints.after_commit()
        except Exception as error:  # noqa: BLE001 - every waiting caller gets it
            if len(works) > 1 and not outcomes:
                for work in works:
                    self._commit([work])
                return
            if not outcomes:
                outcomes = [(False, self._translate(error))] * len(works)
        for work, (fine, value) in zip(works, outcomes, strict=True):
            if fine:
                work.answer.set_result(value)
            else:
                work.answer.set_exception(value)

    def _transaction(self, works: list[Work]) -> list[tuple[bool, Any]]:
        session = self._connected()
        connection = session.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            outcomes = [self._attempt(session, work) for work in works]
            reached("store.before_commit")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        reached("store.after_commit")
        return outcomes

    def _attempt(self, session: Session, work: Work) -> tuple[bool, Any]:
        """Run one piece of work inside the open transaction, undone alone if it fails."""
        connection = session.connection
        for restart in range(MOST_RESTARTS):
            connection.execute("SAVEPOINT work")
            try:
                value = work.action(session)
            except Exception as error:
                if not connection.in_transaction:
                    raise  # SQLite itself undid everything (disk full): nothing of this transaction stands
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
            self._session = Session(connect(self._path, self._synchronous, self._now))
            self._checkpoints = Checkpoints(self._session.connection) if self._lock is not None else None
        return self._session

    def _close_connection(self) -> None:
        if self._session is not None:
            with self._lock.held() if self._lock is not None else contextlib.nullcontext(), FORK_GATE:
                self._session.connection.close()
            self._session = None

    def _translate(self, error: Exception) -> Exception:
        return translate(self._path, error)


def translate(path: str, error: Exception) -> Exception:
    """A driver's error as the rest of Windlass knows it."""
    if isinstance(error, sqlite3.Error) and is_unavailable(error):
        return unavailable(path, error)
    refused = sqlite3.IntegrityError | sqlite3.DataError | sqlite3.InterfaceError | OverflowError | UnicodeError
    if isinstance(error, refused):
        return StoreDataError(str(error))
    return error
