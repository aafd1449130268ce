"""Ends calls on threads that get no answer. (Loops look after their own: `Wire.expect`.)

The driver waits for ever on a line that is open and silent: a proxy that forwards nothing any more, a server that
stands still. Keepalives do not help there, somebody answers them. So every call has a limit, past which its line is
cut; whoever waits for it then gets the error of a broken connection.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import Any, Final

import psycopg

from windlass.domain.clock import monotonic

LOOK_EVERY: Final = 1.0
LOOK_FOR: Final = 10.0
"""Seconds without a call after which the thread that looks sleeps until there is one."""


def cut(connection: psycopg.Connection[Any]) -> None:
    """Shut a connection's line, so that whoever waits on it does so no longer."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


class ThreadPatience:
    """For connections used on threads: another thread looks every second."""

    def __init__(self) -> None:
        self._limits: dict[psycopg.Connection[Any], float] = {}
        self._changed = threading.Condition()
        self._looking = False

    def begin(self, connection: psycopg.Connection[Any], seconds: float | None) -> None:
        """From now on an answer may take that long; None: as long as it takes."""
        self._limits[connection] = float("inf") if seconds is None else monotonic() + seconds
        if not self._looking:
            self._look()

    def end(self, connection: psycopg.Connection[Any]) -> None:
        """Nobody waits any more. Under the lock: what is cut must not be who gets its number next."""
        with self._changed:
            self._limits.pop(connection, None)

    def _look(self) -> None:
        with self._changed:
            if not self._looking:
                self._looking = True
                threading.Thread(target=self._loop, name="windlass-postgres-patience", daemon=True).start()

    def _loop(self) -> None:
        idle_since = monotonic()
        while True:
            with self._changed:
                self._changed.wait(LOOK_EVERY)
                now = monotonic()
                for connection, limit in list(self._limits.items()):
                    if limit < now:
                        del self._limits[connection]
                        cut(connection)
                if self._limits:
                    idle_since = now
                elif now - idle_since > LOOK_FOR:
                    self._looking = False
                    return
