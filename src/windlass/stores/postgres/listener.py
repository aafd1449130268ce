"""Listens for NOTIFY of other processes: on a thread, or on a node's own loop.

A listener reconnects when its connection is lost, and then reports that anything may have changed.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import pq

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.stores.database import CHANNELS
from windlass.stores.postgres import session
from windlass.stores.postgres.thread_wire import ThreadWire
from windlass.stores.postgres.url import CONNECT_TIMEOUT
from windlass.stores.postgres.wire import completed

logger = loggers.logger("windlass.store")

FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 5.0
READ_EVERY: Final = 5.0
"""Seconds between two reads of a socket that was not reported readable.

uvloop reports a broken socket only once, although there may be unread data on it.
"""
PROBE_EVERY = 30.0
"""Seconds between two probes of a connection that listens."""
STOP_CHECK_EVERY: Final = 0.5
"""Seconds between two checks of a thread whether it should stop."""
LISTEN: Final = "; ".join(f"LISTEN {channel}" for channel in CHANNELS)


class NoNotifications:
    """A subscription that delivers nothing."""

    def close(self) -> None:
        """Do nothing."""


class Notifications:
    """Delivers notifications to the callback; survives errors of the callback."""

    def __init__(self, callback: Callable[[str, str], None], description: str) -> None:
        self._callback = callback
        self._description = description
        self.ready = threading.Event()
        """Set once it is known whether notifications can be received."""
        self.delay = FIRST_DELAY
        """Seconds to wait before the next attempt to connect."""

    def deliver(self, channel: str, payload: str) -> None:
        """Deliver one notification."""
        try:
            self._callback(channel, payload)
        except Exception as error:  # noqa: BLE001 - the listener must survive every payload
            logger.error("%s: a notification could not be handled (%s)", self._description, type(error).__name__)

    def pass_on(self, notification: pq.PGnotify) -> None:
        """Deliver one notification of libpq."""
        self.deliver(notification.relname.decode(errors="replace"), notification.extra.decode(errors="replace"))

    def connected(self) -> None:
        """Report a new connection: notifications sent before it are lost."""
        if self.ready.is_set():
            self.deliver("", "")
        self.ready.set()
        self.delay = FIRST_DELAY

    def disconnected(self, error: BaseException) -> float:
        """Log a lost connection; return the seconds to wait before the next attempt."""
        delay, self.delay = self.delay, min(self.delay * 2, LONGEST_DELAY)
        logger.debug("%s: listening connection lost (%s), reconnecting in %.1f s", self._description, error, delay)
        self.ready.set()
        return delay


class Listener:
    """Listens on its own thread."""

    def __init__(self, conninfo: str, notifications: Notifications) -> None:
        self._conninfo = conninfo
        self._notifications = notifications
        self._stop = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="windlass-postgres-listen", daemon=True)
        self._thread.start()
        notifications.ready.wait(CONNECT_TIMEOUT)

    @property
    def closed(self) -> bool:
        """Whether it was stopped."""
        return self._stop.is_set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self._conninfo, autocommit=True) as connection:
                    wire = ThreadWire(connection, prepares=False)
                    wire.set_timeout(session.STATEMENT_TIMEOUT)
                    completed(wire.script(LISTEN))
                    self._notifications.connected()
                    self._connection = connection
                    self._receive(connection)
            except (psycopg.Error, OSError) as error:
                self._connection = None
                self._stop.wait(self._notifications.disconnected(error))

    def _receive(self, connection: psycopg.Connection[Any]) -> None:
        readable = select.poll()
        readable.register(connection.fileno(), select.POLLIN)
        probe = _Probe(connection.pgconn)
        while not self._stop.is_set():
            for notification in probe.read():
                self._notifications.pass_on(notification)
            probe.check()
            readable.poll(STOP_CHECK_EVERY * 1000)

    def close(self) -> None:
        """Stop listening at once: a drain on the caller's loop waits for this."""
        self._stop.set()
        connection = self._connection
        if connection is not None:
            _shut_down(connection)  # ends the wait for notifications
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=2)


class LoopListener:
    """Listens on an event loop, where its callback is called."""

    def __init__(self, conninfo: str, notifications: Notifications, loop: asyncio.AbstractEventLoop) -> None:
        self._conninfo = conninfo
        self._notifications = notifications
        self._loop = loop
        self.closed = False
        self._task = asyncio.run_coroutine_threadsafe(self._run(), loop)
        if not _runs_here(loop):
            notifications.ready.wait(CONNECT_TIMEOUT)

    async def _run(self) -> None:
        while not self.closed:
            try:
                async with asyncio.timeout(session.STATEMENT_TIMEOUT):
                    connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
                try:
                    async with asyncio.timeout(session.STATEMENT_TIMEOUT):
                        await connection.execute(LISTEN.encode())
                    self._notifications.connected()
                    await self._receive(connection)
                finally:
                    await connection.close()
            except (psycopg.Error, OSError) as error:
                await asyncio.sleep(self._notifications.disconnected(error))

    async def _receive(self, connection: psycopg.AsyncConnection[Any]) -> None:
        socket_number = os.dup(connection.fileno())  # libpq may close its own while the loop still watches it
        lost: asyncio.Future[None] = self._loop.create_future()
        probe = _Probe(connection.pgconn)

        def read() -> None:
            try:
                for notification in probe.read():
                    self._notifications.pass_on(notification)
            except psycopg.Error as error:
                if not lost.done():
                    lost.set_exception(error)

        self._loop.add_reader(socket_number, read)
        try:
            while not lost.done():
                read()
                probe.check()
                await asyncio.wait({lost}, timeout=min(READ_EVERY, PROBE_EVERY))
            lost.result()
        finally:
            self._loop.remove_reader(socket_number)
            os.close(socket_number)

    def close(self) -> None:
        """Stop listening; safe to call twice, from any thread, even after the loop has ended."""
        self.closed = True
        if not self._loop.is_closed():
            self._task.cancel()


class _Probe:
    """Checks periodically that the server answers: a dead connection looks like one without notifications."""

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._pgconn = pgconn
        self._answered_at = monotonic()
        self._asked: float | None = None

    def read(self) -> list[pq.PGnotify]:
        """Return the notifications received, and the answer to the probe if there is one."""
        self._pgconn.consume_input()
        if self._asked is not None and not self._pgconn.is_busy():
            while self._pgconn.get_result() is not None:
                pass
            self._asked, self._answered_at = None, monotonic()
        found = []
        while (notification := self._pgconn.notifies()) is not None:
            found.append(notification)
        return found

    def check(self) -> None:
        """Send a probe if it is time; raise if the last one was not answered in time."""
        now = monotonic()
        if self._asked is not None and now - self._asked > session.STATEMENT_TIMEOUT:
            raise psycopg.OperationalError("no answer to a probe of the connection")
        if self._asked is None and now - self._answered_at > PROBE_EVERY:
            self._asked = now
            self._pgconn.send_query(b"SELECT 1")
            self._pgconn.flush()


def _shut_down(connection: psycopg.Connection[Any]) -> None:
    """Shut down a connection's socket, which ends every wait on it."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    with suppress(RuntimeError):
        return asyncio.get_running_loop() is loop
    return False
