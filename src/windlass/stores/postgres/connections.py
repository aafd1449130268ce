"""Connections to PostgreSQL.

Opened when needed, kept when idle, closed when broken. One pool for threads, and one for each event loop.
"""

from __future__ import annotations

import asyncio
import select
import threading
from contextlib import suppress
from typing import Any

import psycopg

from windlass.domain.clock import monotonic
from windlass.errors import ConfigurationError, StoreUnavailableError
from windlass.stores.postgres import session
from windlass.stores.postgres.loop_wire import LoopWire
from windlass.stores.postgres.thread_wire import ThreadWire
from windlass.stores.postgres.version import check_version
from windlass.stores.postgres.wire import Wire

MOST_CONNECTIONS = 10
"""Largest size of one pool; further callers wait until a connection is released."""
WAIT_SECONDS = 30.0
TRUST_SECONDS = 0.05
"""Seconds after its last use during which a connection is assumed to be healthy."""
CHECK_INTERVAL = 1.0
"""Seconds between two checks of the connections in use."""

Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]


def is_healthy(connection: Connection | AsyncConnection) -> bool:
    """Return whether an idle connection is still open.

    A server sends nothing to an idle connection, except that it has closed it.
    """
    if connection.closed:
        return False
    ready = select.poll()
    ready.register(connection.fileno(), select.POLLIN)
    return not ready.poll(0)


class SyncConnections:
    """A pool for callers on threads."""

    def __init__(self, conninfo: str, description: str, *, pooled: bool) -> None:
        self._conninfo = conninfo
        self._description = description
        self._pooled = pooled
        self._idle: list[ThreadWire] = []
        self._lock = threading.Lock()
        self._semaphore = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._closed = False

    async def acquire(self) -> ThreadWire:
        """Return a connection, which the caller must release. Blocks its thread: run it with `completed`."""
        if not self._semaphore.acquire(timeout=WAIT_SECONDS):
            raise StoreUnavailableError(
                f"all {MOST_CONNECTIONS} connections of this process have been busy for {WAIT_SECONDS:.0f} s"
            )
        try:
            return self._pop_healthy() or self._open()
        except BaseException:
            self._semaphore.release()
            raise

    def release(self, wire: Wire) -> None:
        """Return a connection to the pool; one that is not reusable is closed."""
        assert isinstance(wire, ThreadWire)
        if self._closed or not wire.reusable:
            wire.close()
        else:
            with self._lock:
                self._idle.append(wire)
        self._semaphore.release()

    def _pop_healthy(self) -> ThreadWire | None:
        while (found := self._pop()) is not None:
            if is_healthy(found.connection):
                return found
            found.close()
        return None

    def _open(self) -> ThreadWire:
        connection: Connection = psycopg.connect(self._conninfo, autocommit=True)
        try:
            check_version(connection, self._description)
        except ConfigurationError:
            connection.close()
            raise
        session.prepare_connection(connection)
        return ThreadWire(connection, prepares=not self._pooled)

    def _pop(self) -> ThreadWire | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def close(self) -> None:
        """Close idle connections; those in use are closed when they are released."""
        self._closed = True
        self.close_idle()

    def close_idle(self) -> None:
        """Close idle connections; the next callers open new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for wire in idle:
            wire.close()


class AsyncConnections:
    """A pool for callers on one event loop. A statement without an answer within `timeout` seconds is canceled."""

    def __init__(self, conninfo: str, description: str, *, pooled: bool, timeout: float) -> None:
        self._conninfo = conninfo
        self._description = description
        self._pooled = pooled
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._idle: list[tuple[LoopWire, float]] = []
        self._in_use: set[LoopWire] = set()
        self._watched = False
        self._semaphore = asyncio.BoundedSemaphore(MOST_CONNECTIONS)
        self._closed = False

    async def acquire(self) -> LoopWire:
        """Return a connection, which the caller must release."""
        if self._semaphore.locked():
            async with asyncio.timeout(self._timeout):
                await self._semaphore.acquire()
        else:
            await self._semaphore.acquire()
        try:
            wire = self._pop_healthy() or await self._open()
        except BaseException:
            self._semaphore.release()
            raise
        wire.set_timeout(self._timeout)
        self._in_use.add(wire)
        if not self._watched:
            self._watched = True
            self._loop.call_later(CHECK_INTERVAL, self._check_in_use)
        return wire

    def release(self, wire: Wire) -> None:
        """Return a connection to the pool; one that is not reusable is closed."""
        assert isinstance(wire, LoopWire)
        self._in_use.discard(wire)
        self._semaphore.release()
        if self._closed or not wire.reusable:
            wire.close()
        else:
            self._idle.append((wire, monotonic()))

    def _pop_healthy(self) -> LoopWire | None:
        while self._idle:
            found, since = self._idle.pop()
            if monotonic() - since < TRUST_SECONDS or is_healthy(found.connection):
                return found
            found.close()
        return None

    async def _open(self) -> LoopWire:
        async with asyncio.timeout(self._timeout):
            connection: AsyncConnection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        try:
            check_version(connection, self._description)
        except ConfigurationError:
            await connection.close()
            raise
        session.prepare_connection(connection)
        return LoopWire(connection, prepares=not self._pooled)

    def _check_in_use(self) -> None:
        """Check for timeouts with one timer for all plans: one timer each would cost a tenth of a small plan."""
        now = monotonic()
        for wire in self._in_use:
            wire.check(now)
        self._watched = bool(self._in_use)
        if self._watched:
            self._loop.call_later(CHECK_INTERVAL, self._check_in_use)

    def close(self) -> None:
        """Close idle connections; those in use are closed when they are released.

        Safe to call from any thread, even after the loop has ended.
        """
        self._closed = True
        if self._loop.is_running() and threading.get_ident() != self._thread:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self.close_idle)
                return
        self.close_idle()

    def close_idle(self) -> None:
        """Close idle connections; the next callers open new ones. Call it on the loop, or after the loop has ended."""
        idle, self._idle = self._idle, []
        for wire, _ in idle:
            wire.close()
