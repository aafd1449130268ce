"""SQLite files: connections, the lock that writers of several processes share, and checkpoints.

SQLite before 3.51.3 can corrupt a file when two connections write and checkpoint at the same moment. So Windlass never
checkpoints automatically: every write holds the lock of this module, and checkpoints happen only under it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from windlass.errors import StoreUnavailableError
from windlass.stores.sqlite.location import IN_MEMORY

try:
    import fcntl
except ImportError:  # no POSIX locks: several writers then rely on SQLite's own busy timeout
    _flock: Callable[[int, int], None] | None = None
    EXCLUSIVE = UNLOCK = 0
else:
    _flock, EXCLUSIVE, UNLOCK = fcntl.flock, fcntl.LOCK_EX, fcntl.LOCK_UN

LOCK_DEADLINE = 10.0
"""Seconds that an operation waits in total.

Behind other writers of this process, for the lock file, and for SQLite's lock.
"""
BUSY_TIMEOUT_MS = 500
"""How long SQLite itself waits at a time; the writer tries again until the deadline of the operation."""
CHECKPOINT_CHANGES = 30_000
"""Number of rows that a process changes between two checkpoints: up to some 10 MB of write-ahead log.

Rows of temporary tables count, although they are not in the log.
"""

_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "it is locked",
    sqlite3.SQLITE_LOCKED: "it is locked",
    sqlite3.SQLITE_READONLY: "it is read-only; check the permissions of the file and its folder",
    sqlite3.SQLITE_FULL: "the disk is full; free some space, work continues by itself",
    sqlite3.SQLITE_IOERR: "reading or writing the file failed; check the disk",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the folder exists and may be written",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database; check the path in the URL",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a backup",
}


_LASTING = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
"""Errors that do not pass by themselves."""


def connect(path: str, synchronous: str, now: Callable[[], int], *, writes: bool = True) -> sqlite3.Connection:
    """Open a connection with durable settings, in autocommit mode; one that writes switches the file to WAL."""
    if os.path.exists(path) and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        # SQLite would open it read-only, and refuse writes for good, even once the file is writable.
        advice = _UNAVAILABLE[sqlite3.SQLITE_READONLY]
        raise StoreUnavailableError(f"SQLite database {path}: {advice}", lasting=True)
    connection = None
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
        connection.create_function("windlass_now", 0, now)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS if writes else int(LOCK_DEADLINE * 1000)}")
        if writes and path != IN_MEMORY:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA cache_size = -16000")
    except sqlite3.Error:
        if connection is not None:
            connection.close()
        raise
    return connection


def unavailable(path: str, error: sqlite3.Error) -> StoreUnavailableError:
    """Return the error for users when SQLite cannot do its work, with what to do about it."""
    code = _code(error)
    advice = _UNAVAILABLE.get(code, "it does not answer")
    return StoreUnavailableError(f"SQLite database {path}: {advice} ({error})", lasting=code in _LASTING)


def is_locked(error: Exception) -> bool:
    """Return whether another connection holds a needed lock of SQLite."""
    return isinstance(error, sqlite3.Error) and _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_unavailable(error: sqlite3.Error) -> bool:
    """Return whether an error concerns the file and not the statement."""
    return _code(error) in _UNAVAILABLE


class WriteLock:
    """A fair lock between the writers of several processes, on a file beside the database.

    Waiting on SQLite's own lock means sleeping and trying again, which starves some of eight busy writers. Here all
    queue at a turnstile first: a process that just wrote has to queue behind those that wait already.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: tuple[int, int] | None = None

    @contextmanager
    def held(self, *, create: bool = True) -> Iterator[None]:
        """Hold the lock; without `create`, missing lock files are not created, and nothing is locked."""
        files = self._open() if create or self._files or os.path.exists(f"{self._path}-lock") else None
        if _flock is None or files is None:
            yield
            return
        turnstile, lock = files
        _flock(turnstile, EXCLUSIVE)
        try:
            _flock(lock, EXCLUSIVE)
        finally:
            _flock(turnstile, UNLOCK)
        try:
            yield
        finally:
            _flock(lock, UNLOCK)

    def _open(self) -> tuple[int, int] | None:
        if self._files is None and _flock is not None:
            try:
                turnstile, lock = (
                    os.open(f"{self._path}-{name}", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
                    for name in ("turnstile", "lock")
                )
            except OSError as error:
                raise StoreUnavailableError(
                    f"cannot create the lock files beside {self._path} ({error.strerror}); "
                    "the folder of a SQLite database must exist and be writable",
                    lasting=True,
                ) from error
            self._files = (turnstile, lock)
        return self._files

    def close(self) -> None:
        """Close the lock files."""
        for file in self._files or ():
            os.close(file)
        self._files = None


class Checkpoints:
    """Makes a checkpoint after so many changes; the caller holds the write lock.

    Passive: it never waits for readers; what they still need is written by a later checkpoint. A second connection
    holds SQLite's own lock meanwhile, so that connections that do not use the lock file do not write during it either.
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._seen = 0

    def after_commit(self) -> None:
        """Make a checkpoint if it is due; if another connection writes, it is tried again after the next commit."""
        changes = self._connection.total_changes
        if changes - self._seen > CHECKPOINT_CHANGES and self._checkpoint():
            self._seen = changes

    def _checkpoint(self) -> bool:
        with closing(sqlite3.connect(self._path, timeout=0, isolation_level=None)) as guard:
            guard.execute("PRAGMA wal_autocheckpoint = 0")
            try:
                guard.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            guard.execute("ROLLBACK")
        return True
