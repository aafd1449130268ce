"""A wire of an event loop: waits for the socket on the loop, beside everything else that runs there."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import psycopg

from windlass.stores.postgres.wire import CALL_OFF_SECONDS, NO_LIMIT, Wire


class LoopWire(Wire):
    """One connection of the running loop."""

    __slots__ = ("_answer", "_loop", "_socket", "connection")

    def __init__(self, connection: psycopg.AsyncConnection[Any], *, prepares: bool) -> None:
        super().__init__(connection, prepares=prepares)
        self.connection = connection
        # A number of our own: libpq closes its one when the connection is lost, the next socket may get it, and uvloop
        # aborts the process if it still watches that number.
        self._socket = os.dup(connection.fileno())
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[None] | None = None
        # For good: to watch a socket anew for every statement costs as much as to send it.
        self._loop.add_reader(self._socket, self._read)

    def close(self) -> None:
        """Give the connection up; on its loop, or when that is over."""
        if self._socket >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
            os.close(self._socket)
            self._socket = -1
        super().close()

    async def _readable(self, *, unsent: bool) -> None:
        self._answer = self._loop.create_future()
        if unsent:
            self._loop.add_writer(self._socket, self._write)
        try:
            await self._answer
        finally:
            self._answer = None
            if unsent:
                self._loop.remove_writer(self._socket)

    async def _flushed(self) -> None:
        while self._pgconn.flush() == 1:
            self._answer = self._loop.create_future()
            self._loop.add_writer(self._socket, self._answered, None)
            try:
                await self._answer
            finally:
                self._answer = None
                self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        try:
            self._pgconn.consume_input()
            if not self._pgconn.is_busy():
                self._answered(None)
        except psycopg.Error as error:
            self._loop.remove_reader(self._socket)
            self._answered(error)

    def _write(self) -> None:
        try:
            if self._pgconn.flush() == 0:
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._answered(error)

    def _answered(self, error: BaseException | None) -> None:
        answer = self._answer
        if answer is None or answer.done():
            return
        if error is None:
            answer.set_result(None)
        else:
            answer.set_exception(error)

    # ------------------------------------------------------------------ giving up

    def look(self, now: float) -> None:
        """Now and then: give up what has waited too long, and read unasked.

        uvloop shows a socket in trouble once and then leaves it alone, though there may have been words on it to be
        read before the trouble.
        """
        if self._answer is None:
            return
        if now > self._deadline:
            self._deadline = NO_LIMIT
            self._answered(TimeoutError("no answer in time"))
        else:
            self._read()

    async def _call_off(self) -> None:
        """Nobody wants the answer any more: the server shall stop, and what it says is taken off the line.

        If that fails the connection is not in order, and is closed when it is given back.
        """
        try:
            async with asyncio.timeout(CALL_OFF_SECONDS):
                await self.connection.cancel_safe(timeout=CALL_OFF_SECONDS)
                await self._gathered()
                if self._pgconn.pipeline_status:
                    self._pgconn.exit_pipeline_mode()
        except (psycopg.Error, OSError):
            pass
