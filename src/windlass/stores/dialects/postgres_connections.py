"""Connections to PostgreSQL.

Made when needed, kept when idle, thrown away when broken. Sync for threads, async for one loop each.
"""

from __future__ import annotations

import asyncio
import select
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

import psycopg

from windlass.domain.clock import monotonic
from windlass.errors import StoreUnavailableError
from windlass.stores.dialects import postgres_session as session
from windlass.stores.dialects.postgres_patience import LoopPatience, ThreadPatience

MOST_CONNECTIONS = 10
"""Per process and kind; callers beyond that wait for one to come back."""
WAIT_SECONDS = 30.0
SURELY_SOUND = 0.05
"""Seconds after its last use in which a connection is believed to be good without a look."""

T = TypeVar("T")
P = ParamSpec("P")

Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]


def is_sound(connection: Connection | AsyncConnection) -> bool:
    """Whether an idle connection is still good: the server says nothing unasked, except that it has ended it."""
    if connection.closed:
        return False
    ready = select.poll()
    ready.register(connection.fileno(), select.POLLIN)
    return not ready.poll(0)


class SyncConnections:
    """For callers on threads."""

    def __init__(self, conninfo: str, *, pooled: bool) -> None:
        self._conninfo = conninfo
        self._pooled = pooled
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.patience = ThreadPatience()
        self._closed = False

    @contextmanager
    def one(self) -> Iterator[Connection]:
        """Borrow a connection; it comes back only in good order."""
        if not self._places.acquire(timeout=WAIT_SECONDS):
            raise StoreUnavailableError(
                f"all {MOST_CONNECTIONS} connections of this process have been busy for {WAIT_SECONDS:.0f} s"
            )
        try:
            connection = self._take()
            try:
                self.patience.begin(connection, session.STATEMENT_TIMEOUT)
                yield connection
            finally:
                self.patience.end(connection)
                self._give_back(connection)
        finally:
            self._places.release()

    def _take(self) -> Connection:
        while (found := self._pop()) is not None:
            if is_sound(found):
                return found
            found.close()
        connection: Connection = psycopg.connect(self._conninfo, autocommit=True)
        session.prepare_connection(connection, pooled=self._pooled)
        return connection

    def _pop(self) -> Connection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        if self._closed or connection.broken or connection.closed or connection.info.transaction_status != idle:
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle; what is out is closed when it comes back."""
        self._closed = True
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class AsyncConnections:
    """For callers on one event loop."""

    def __init__(self, conninfo: str, *, pooled: bool) -> None:
        self._conninfo = conninfo
        self._pooled = pooled
        self._idle: list[tuple[AsyncConnection, float]] = []
        self._places = asyncio.BoundedSemaphore(MOST_CONNECTIONS)
        self.patience = LoopPatience()
        self._closed = False

    async def use(
        self, action: Callable[Concatenate[AsyncConnection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Lend a connection for an action; it is kept only if it comes back in good order."""
        if self._places.locked():
            async with asyncio.timeout(WAIT_SECONDS):
                await self._places.acquire()
        else:
            await self._places.acquire()
        try:
            connection = await self._take()
            try:
                self.patience.begin(connection, session.STATEMENT_TIMEOUT)
                return await action(connection, *args, **kwargs)
            finally:
                self.patience.end(connection)
                await self._give_back(connection)
        finally:
            self._places.release()

    async def _take(self) -> AsyncConnection:
        while self._idle:
            found, since = self._idle.pop()
            if monotonic() - since < SURELY_SOUND or is_sound(found):
                return found
            await found.close()
        async with asyncio.timeout(session.STATEMENT_TIMEOUT):  # the driver's own limit does not cover names
            connection: AsyncConnection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        session.prepare_connection(connection, pooled=self._pooled)
        return connection

    async def _give_back(self, connection: AsyncConnection) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        if self._closed or connection.broken or connection.closed or connection.info.transaction_status != idle:
            await connection.close()
        else:
            self._idle.append((connection, monotonic()))

    async def close(self) -> None:
        """Close what is idle; what is out is closed when it comes back."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            await connection.close()

    def close_at_once(self) -> None:
        """Close what is idle without a loop, which may be over: an idle connection has nothing to wait for."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.pgconn.finish()
