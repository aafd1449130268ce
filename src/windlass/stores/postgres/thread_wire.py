"""A wire of threads: waits for the socket where it is used, as long as a statement may take."""

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

    async def _readable(self, *, unsent: bool) -> None:
        while True:
            self._wait(select.POLLIN | select.POLLOUT if unsent else select.POLLIN)
            if unsent:
                unsent = self._pgconn.flush() == 1
            if not self._pgconn.is_busy():
                return

    async def _flushed(self) -> None:
        while self._pgconn.flush() == 1:
            self._wait(select.POLLIN | select.POLLOUT)

    def _wait(self, events: int) -> None:
        """Wait for the socket, and read what is there.

        The driver would wait for ever on a line that is open and silent: a proxy that forwards nothing any more, a
        server that stands still. Keepalives do not help there: somebody answers them.
        """
        left = None if self._deadline == NO_LIMIT else max(self._deadline - monotonic(), 0) * 1000
        self._poll.register(self._pgconn.socket, events)
        ready = self._poll.poll(left)
        if not ready:
            raise TimeoutError("no answer in time")
        if ready[0][1] & ~select.POLLOUT:
            self._pgconn.consume_input()

    async def _call_off(self) -> None:
        """The line is silent: what is left to do is to close it."""
        self.spoiled = True
