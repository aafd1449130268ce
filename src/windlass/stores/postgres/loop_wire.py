"""A wire for an event loop: waits for its socket without blocking the loop."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import psycopg

from windlass.stores.postgres.wire import CANCEL_SECONDS, NO_LIMIT, Wire


class LoopWire(Wire):
    """One connection, used on the running loop."""

    __slots__ = ("_answer", "_loop", "_socket", "connection")

    def __init__(self, connection: psycopg.AsyncConnection[Any], *, prepares: bool) -> None:
        super().__init__(connection, prepares=prepares)
        self.connection = connection
        # A duplicate: libpq closes its own descriptor when the connection is lost, the next socket may get the same
        # number, and uvloop aborts the process if it still watches that number.
        self._socket = os.dup(connection.fileno())
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[None] | None = None
        # For the life of the connection: adding a reader for every statement costs as much as sending the statement.
        self._loop.add_reader(self._socket, self._read)

    def close(self) -> None:
        """Close the connection; on its loop, or after the loop has ended."""
        if self._socket >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
            os.close(self._socket)
            self._socket = -1
        super().close()

    async def _wait_readable(self, *, unsent: bool) -> None:
        self._answer = self._loop.create_future()
        if unsent:
            self._loop.add_writer(self._socket, self._write)
        try:
            await self._answer
        finally:
            self._answer = None
            if unsent:
                self._loop.remove_writer(self._socket)

    async def _flush(self) -> None:
        while self._pgconn.flush() == 1:
            self._answer = self._loop.create_future()
            self._loop.add_writer(self._socket, self._resolve, None)
            try:
                await self._answer
            finally:
                self._answer = None
                self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        try:
            self._pgconn.consume_input()
            if not self._pgconn.is_busy():
                self._resolve(None)
        except psycopg.Error as error:
            self._loop.remove_reader(self._socket)
            self._resolve(error)

    def _write(self) -> None:
        try:
            if self._pgconn.flush() == 0:
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._resolve(error)

    def _resolve(self, error: BaseException | None) -> None:
        answer = self._answer
        if answer is None or answer.done():
            return
        if error is None:
            answer.set_result(None)
        else:
            answer.set_exception(error)

    # ------------------------------------------------------------------ timeouts

    def check(self, now: float) -> None:
        """Time out a statement that is overdue; otherwise read the socket, even if it was not reported readable.

        uvloop reports a broken socket only once, although there may be unread data on it.
        """
        if self._answer is None:
            return
        if now > self._deadline:
            self._deadline = NO_LIMIT
            self._resolve(TimeoutError("no answer in time"))
        else:
            self._read()

    async def _cancel_statement(self) -> None:
        """Cancel the statement whose answer is no longer wanted, and discard what the server still sends.

        If that fails, the connection is not reusable and is closed when it is released.
        """
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self.connection.cancel_safe(timeout=CANCEL_SECONDS)
                await self._read_results()
                if self._pgconn.pipeline_status:
                    self._pgconn.exit_pipeline_mode()
        except (psycopg.Error, OSError):
            pass
