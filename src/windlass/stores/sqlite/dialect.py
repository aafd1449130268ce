"""SQLite: embedded, nothing to install.

One writer thread per process, readers beside it (WAL), files shared by several processes.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import ClassVar, TypeVar

from windlass.errors import StoreUnavailableError
from windlass.runtime.forks import after_fork
from windlass.stores.channels import CANCELED, DONE, WORK
from windlass.stores.database import LOST, P, PlanFunction, Wakeups
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, drive
from windlass.stores.sqlite.files import connect
from windlass.stores.sqlite.forks import FORK_GATE, never_close_in_child
from windlass.stores.sqlite.location import Location
from windlass.stores.sqlite.session import Session
from windlass.stores.sqlite.writer import Writer, translate

T = TypeVar("T")

WATCH_INTERVAL = 0.02
"""Seconds between two reads of `PRAGMA data_version`, which shows commits of other connections: 5 µs each."""


class SqliteDialect(Dialect):
    """The shared plans as they are; its own statements read many rows from one JSON text (`sql/tables.sql`)."""

    name: ClassVar[str] = "sqlite"


class SqliteDatabase:
    """A SQLite file, or a private database in memory (`:memory:`)."""

    notifies: ClassVar[bool] = False
    migrates_itself: ClassVar[bool] = True

    def __init__(
        self, path: str, now: Callable[[], int], synchronous: str = "FULL", *, is_default: bool = False
    ) -> None:
        self.dialect: Dialect = SqliteDialect()
        self.path = path
        self.location = Location(path, is_default=is_default)
        in_memory = self.location.in_memory
        self.description = "SQLite in memory" if in_memory else f"SQLite {path} (WAL, synchronous={synchronous})"
        self.wakeup_mode = "in process" if in_memory else "in process, and by watching the file"
        self.known_queues: set[str] = set()
        self.now = now
        self._synchronous = synchronous
        self._start()
        after_fork(self._start_in_child)

    def _start_in_child(self) -> None:
        self._writer.never_close_in_child()
        never_close_in_child(self._idle_readers, self._watches)
        self._start()

    def _start(self) -> None:
        """Start with new threads and no connections; also after a fork, where the parent's must not be touched."""
        self._writer = Writer(self.location, self._synchronous, self.now)
        self._idle_readers: list[Session] = []
        self._readers = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._watches: list[CommitWatch] = []

    def apart(self, *, outlives: bool = False) -> SqliteDatabase:
        """Return this one: a file has one writer at a time anyway. A separate one if it must stay open longer."""
        if not outlives or self.location.in_memory:
            return self
        return SqliteDatabase(self.location.path, self.now, self._synchronous)

    # ------------------------------------------------------------------ plans

    def run(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan on the writer thread and wait for its commit."""
        result: T = self._writer.run(lambda session: _run_plan(plan(self.dialect, *args, **kwargs), session))
        return result

    async def arun(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan on the writer thread and await its commit."""
        result: T = await self._writer.arun(lambda session: _run_plan(plan(self.dialect, *args, **kwargs), session))
        return result

    def read(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan on a reading connection, in its own snapshot."""
        if self.location.in_memory:
            return self.run(plan, *args, **kwargs)
        self.location.check()
        try:
            with self._reader() as session, FORK_GATE:
                return _read(plan(self.dialect, *args, **kwargs), session)
        except sqlite3.Error as error:
            raise translate(self.location, error) from error

    async def aread(self, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do `read` on a thread, so that the loop is not blocked."""
        if self.location.in_memory:
            return await self.arun(plan, *args, **kwargs)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(2, thread_name_prefix="windlass-sqlite-reader")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: self.read(plan, *args, **kwargs))

    @contextmanager
    def _reader(self) -> Iterator[Session]:
        readers, idle = self._readers, self._idle_readers  # a fork in between replaces them
        with readers:
            session = idle.pop() if idle else None
        session = session or self._new_reader()
        try:
            yield session
        finally:
            with readers:
                idle.append(session)

    def _new_reader(self) -> Session:
        """Open without the lock: only the writer switches a new file to WAL, and readers notice that by themselves."""
        with FORK_GATE:
            connection = connect(self.location.path, self._synchronous, self.now, writes=False)
            self.location.opened()
        return Session(connection)

    def require(self) -> None:
        """Raise if there is no file."""
        self.location.require()

    # ------------------------------------------------------------------ wakeups

    def notify(self, channel: str, payload: str) -> None:
        """Do nothing: other processes see the file change."""

    async def anotify(self, channel: str, payload: str) -> None:
        """Do nothing: other processes see the file change."""

    def listen(self, callback: Callable[[str, str], None], loop: asyncio.AbstractEventLoop | None = None) -> Wakeups:
        """Watch the file for commits of other connections, on a thread."""
        del loop
        watch = CommitWatch(self, callback)
        self._watches = [*(known for known in self._watches if not known.closed), watch]
        return watch

    # ------------------------------------------------------------------ end

    def close(self) -> None:
        """Close every connection, under the lock: the last one to close makes a checkpoint.

        Later use opens it again; a database in memory is then empty.
        """
        for watch in self._watches:
            watch.close()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        with self._readers:
            idle, self._idle_readers = self._idle_readers, []
        self._writer.close(idle)
        self.location.forget()
        self.known_queues.clear()
        self._start()

    async def aclose_loop(self) -> None:
        """Do nothing: no connection belongs to a loop."""


class CommitWatch:
    """Polls `PRAGMA data_version` on its own connection and calls back when another connection has committed.

    It also checks the file itself, and calls back a last time when the file was deleted or replaced.
    """

    def __init__(self, database: SqliteDatabase, callback: Callable[[str, str], None]) -> None:
        self._database = database
        self._callback = callback
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if not database.location.in_memory:
            self._thread = threading.Thread(target=self._loop, name="windlass-sqlite-watch", daemon=True)
            self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether it was stopped."""
        return self._stop.is_set()

    def _loop(self) -> None:
        while not self._stop.wait(WATCH_INTERVAL):
            try:
                self._database.location.check()
            except StoreUnavailableError as loss:
                self._callback(LOST, str(loss))
                return
            with suppress(sqlite3.Error, StoreUnavailableError), self._database._reader() as session:
                self._watch(session)

    def _watch(self, session: Session) -> None:
        seen = None
        while not self._stop.wait(WATCH_INTERVAL):
            self._database.location.check()
            with FORK_GATE:
                version = session.connection.execute("PRAGMA data_version").fetchone()
            if version != seen:
                seen = version
                self._callback(WORK, "*")
                self._callback(DONE, "")
                self._callback(CANCELED, "")

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()


def _read(plan: Plan[T], session: Session) -> T:
    session.connection.execute("BEGIN")
    try:
        return _run_plan(plan, session)
    finally:
        session.connection.execute("COMMIT")


def _run_plan(plan: Plan[T], session: Session) -> T:
    try:
        first = next(plan)
    except StopIteration as stop:
        result: T = stop.value
        return result
    return drive(plan, first, session.execute)
