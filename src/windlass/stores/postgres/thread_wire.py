"""A wire for threads: blocks the thread until its socket is ready or the statement times out."""

from __future__ import annotations

import select
from typing import Any

import psycopg

from windlass.domain.clock import monotonic
from windlass.stores.postgres.wire import NO_LIMIT, Wire


class ThreadWire(Wire):
    """One connection, used by one thread at a time. Its coroutines never suspend: run them with `completed`."""

    __slots__ = ("_poll", "connection")

    def __init__(self, connection: psycopg.Connection[Any], *, prepares: bool) -> None:
        super().__init__(connection, prepares=prepares)
        self.connection = connection
        self._poll = select.poll()

    async def _wait_readable(self, *, unsent: bool) -> None:
        while True:
            self._wait(select.POLLIN | select.POLLOUT if unsent else select.POLLIN)
            if unsent:
                unsent = self._pgconn.flush() == 1
            if not self._pgconn.is_busy():
                return

    async def _flush(self) -> None:
        while self._pgconn.flush() == 1:
            self._wait(select.POLLIN | select.POLLOUT)

    def _wait(self, events: int) -> None:
        """Wait for the socket, and read what is there.

        The driver would wait for ever on a connection that is open but silent: a proxy that no longer forwards, a
        server that is stopped. Keepalives do not help: the kernel on the other side still answers them.
        """
        left = None if self._deadline == NO_LIMIT else max(self._deadline - monotonic(), 0) * 1000
        self._poll.register(self._pgconn.socket, events)
        ready = self._poll.poll(left)
        if not ready:
            raise TimeoutError("no answer in time")
        if ready[0][1] & ~select.POLLOUT:
            self._pgconn.consume_input()

    async def _cancel_statement(self) -> None:
        """Mark the connection as broken: it is silent, and can only be closed."""
        self.broken = True
