"""Hears what other processes tell by NOTIFY: on a thread, or on a node's own loop, without a hop.

Whoever listens connects again when the connection is lost, and is then told that anything may have happened.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import sql

from windlass import saying
from windlass.stores.database import CHANNELS
from windlass.stores.dialects.postgres_session import CONNECT_TIMEOUT

logger = saying.logger("windlass.store")

FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 5.0
LOOK_EVERY: Final = 5.0
"""Seconds between two reads unasked: uvloop shows a socket in trouble once, perhaps with words on it to be read."""
LISTEN: Final = sql.SQL("; ").join(sql.SQL("LISTEN {}").format(sql.Identifier(channel)) for channel in CHANNELS)


class Deaf:
    """A subscription to nothing."""

    def close(self) -> None:
        """Nothing to stop."""


class Heard:
    """Passes on what is heard; outlives whatever the listener's callback does."""

    def __init__(self, callback: Callable[[str, str], None], description: str) -> None:
        self._callback = callback
        self._description = description
        self.ready = threading.Event()
        """Set once it is known whether anything can be heard."""
        self.delay = FIRST_DELAY
        """Seconds to wait before the next try to connect."""

    def tell(self, channel: str, payload: str) -> None:
        """Pass one notification on."""
        try:
            self._callback(channel, payload)
        except Exception as error:  # noqa: BLE001 - whatever was said, the listener must go on hearing
            logger.error("%s: a notification was not understood (%s)", self._description, type(error).__name__)

    def connected(self) -> None:
        """From now on notifications come; whatever was told while nobody listened is not told again."""
        if self.ready.is_set():
            self.tell("", "")
        self.ready.set()
        self.delay = FIRST_DELAY

    def cut_off(self, error: BaseException) -> float:
        """Nothing comes any more; answers how long to wait before the next try."""
        delay, self.delay = self.delay, min(self.delay * 2, LONGEST_DELAY)
        logger.debug("%s: listening was cut off (%s), trying again in %.1f s", self._description, error, delay)
        self.ready.set()
        return delay


class Listener:
    """Hears on a thread of its own."""

    def __init__(self, conninfo: str, heard: Heard) -> None:
        self._conninfo = conninfo
        self._heard = heard
        self._stop = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None
        self._thread = threading.Thread(target=self._live, name="windlass-postgres-listen", daemon=True)
        self._thread.start()
        heard.ready.wait(CONNECT_TIMEOUT)

    @property
    def closed(self) -> bool:
        """Whether it was told to stop."""
        return self._stop.is_set()

    def _live(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self._conninfo, autocommit=True) as connection:
                    connection.execute(LISTEN)
                    self._heard.connected()
                    self._connection = connection
                    self._hear(connection)
            except (psycopg.Error, OSError) as error:
                self._connection = None
                self._stop.wait(self._heard.cut_off(error))

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stop.is_set():
            for notification in connection.notifies(timeout=0.5):
                self._heard.tell(notification.channel, notification.payload)
                if self._stop.is_set():
                    return

    def close(self) -> None:
        """Stop listening, at once: a drain on the caller's loop waits for this."""
        self._stop.set()
        connection = self._connection
        if connection is not None:
            with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)  # ends the wait for notifications
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=2)


class LoopListener:
    """Hears on an event loop, where its callback is called."""

    def __init__(self, conninfo: str, heard: Heard, loop: asyncio.AbstractEventLoop) -> None:
        self._conninfo = conninfo
        self._heard = heard
        self._loop = loop
        self.closed = False
        self._life = asyncio.run_coroutine_threadsafe(self._live(), loop)
        if not _runs_here(loop):
            heard.ready.wait(CONNECT_TIMEOUT)

    async def _live(self) -> None:
        while not self.closed:
            try:
                connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
                try:
                    await connection.execute(LISTEN)
                    self._heard.connected()
                    await self._hear(connection)
                finally:
                    await connection.close()
            except (psycopg.Error, OSError) as error:
                await asyncio.sleep(self._heard.cut_off(error))

    async def _hear(self, connection: psycopg.AsyncConnection[Any]) -> None:
        pgconn, socket_number = connection.pgconn, connection.fileno()
        lost: asyncio.Future[None] = self._loop.create_future()

        def read() -> None:
            try:
                pgconn.consume_input()
                while (told := pgconn.notifies()) is not None:
                    self._heard.tell(told.relname.decode(), told.extra.decode())
            except psycopg.Error as error:
                if not lost.done():
                    lost.set_exception(error)

        self._loop.add_reader(socket_number, read)
        try:
            while not lost.done():
                read()
                await asyncio.wait({lost}, timeout=LOOK_EVERY)
            lost.result()
        finally:
            self._loop.remove_reader(socket_number)

    def close(self) -> None:
        """Stop listening; safe to call twice, from any thread, also when the loop is over."""
        self.closed = True
        if not self._loop.is_closed():
            self._life.cancel()


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    with suppress(RuntimeError):
        return asyncio.get_running_loop() is loop
    return False
