"""Connections to PostgreSQL.

Made when needed, kept when idle, thrown away when broken. Sync for threads, async for one loop each.
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
"""Per process and kind; callers beyond that wait for one to come back."""
WAIT_SECONDS = 30.0
SURELY_SOUND = 0.05
"""Seconds after its last use in which a connection is believed to be good without a look."""
LOOK_EVERY = 1.0
"""Seconds between two looks at what is out."""

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

    def __init__(self, conninfo: str, description: str, *, pooled: bool) -> None:
        self._conninfo = conninfo
        self._description = description
        self._pooled = pooled
        self._idle: list[ThreadWire] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._closed = False

    async def take(self) -> ThreadWire:
        """Borrow a connection; give it back whatever happens. Waits on the thread: run it with `completed`."""
        if not self._places.acquire(timeout=WAIT_SECONDS):
            raise StoreUnavailableError(
                f"all {MOST_CONNECTIONS} connections of this process have been busy for {WAIT_SECONDS:.0f} s"
            )
        try:
            return self._sound_one() or self._new_one()
        except BaseException:
            self._places.release()
            raise

    def give_back(self, wire: Wire) -> None:
        """It is kept only if it is in good order."""
        assert isinstance(wire, ThreadWire)
        if self._closed or not wire.in_order:
            wire.close()
        else:
            with self._lock:
                self._idle.append(wire)
        self._places.release()

    def _sound_one(self) -> ThreadWire | None:
        while (found := self._pop()) is not None:
            if is_sound(found.connection):
                return found
            found.close()
        return None

    def _new_one(self) -> ThreadWire:
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
        """Close what is idle; what is out is closed when it comes back."""
        self._closed = True
        self.close_idle()

    def close_idle(self) -> None:
        """Have new ones made for whoever comes next."""
        with self._lock:
            idle, self._idle = self._idle, []
        for wire in idle:
            wire.close()


class AsyncConnections:
    """For callers on one event loop. A plan that has had no answer for `patience` seconds is given up."""

    def __init__(self, conninfo: str, description: str, *, pooled: bool, patience: float) -> None:
        self._conninfo = conninfo
        self._description = description
        self._pooled = pooled
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._idle: list[tuple[LoopWire, float]] = []
        self._out: set[LoopWire] = set()
        self._watched = False
        self._places = asyncio.BoundedSemaphore(MOST_CONNECTIONS)
        self._closed = False

    async def take(self) -> LoopWire:
        """Borrow a connection; give it back whatever happens."""
        if self._places.locked():
            async with asyncio.timeout(self._patience):
                await self._places.acquire()
        else:
            await self._places.acquire()
        try:
            wire = self._sound_one() or await self._new_one()
        except BaseException:
            self._places.release()
            raise
        wire.expect(self._patience)
        self._out.add(wire)
        if not self._watched:
            self._watched = True
            self._loop.call_later(LOOK_EVERY, self._look)
        return wire

    def give_back(self, wire: Wire) -> None:
        """It is kept only if it is in good order."""
        assert isinstance(wire, LoopWire)
        self._out.discard(wire)
        self._places.release()
        if self._closed or not wire.in_order:
            wire.close()
        else:
            self._idle.append((wire, monotonic()))

    def _sound_one(self) -> LoopWire | None:
        while self._idle:
            found, since = self._idle.pop()
            if monotonic() - since < SURELY_SOUND or is_sound(found.connection):
                return found
            found.close()
        return None

    async def _new_one(self) -> LoopWire:
        async with asyncio.timeout(self._patience):
            connection: AsyncConnection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        try:
            check_version(connection, self._description)
        except ConfigurationError:
            await connection.close()
            raise
        session.prepare_connection(connection)
        return LoopWire(connection, prepares=not self._pooled)

    def _look(self) -> None:
        """One timer for all plans: one for each would cost as much as a tenth of a small plan."""
        now = monotonic()
        for wire in self._out:
            wire.look(now)
        self._watched = bool(self._out)
        if self._watched:
            self._loop.call_later(LOOK_EVERY, self._look)

    def close(self) -> None:
        """Close what is idle; what is out is closed when it comes back. From any thread, also when the loop is over."""
        self._closed = True
        if self._loop.is_running() and threading.get_ident() != self._thread:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self.close_idle)
                return
        self.close_idle()

    def close_idle(self) -> None:
        """Have new ones made for whoever comes next. On the loop, or when it is over."""
        idle, self._idle = self._idle, []
        for wire, _ in idle:
            wire.close()
