"""Coalesced notifications: the first at once, at most one per 20 ms, the last one never lost.

A notification on every commit costs three quarters of the concurrent enqueue rate; one per 20 ms is free.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from uuid import uuid4

from windlass import loggers
from windlass.domain.clock import monotonic
from windlass.domain.throttle import Action, Throttle
from windlass.runtime.forks import after_fork
from windlass.stores.database import Database

logger = loggers.logger("windlass.store")

INTERVAL = 0.02
LEEWAY = 0.005
"""Seconds that the trailing notification is delayed, so that in a stream of commits the next one carries it.

A separate one costs a transaction, and its thread competes with the stream.
"""
MOST_BYTES = 7_000
EVERYTHING = "*"


def payload_of(sender: str, parts: Iterable[str]) -> str:
    """Return a payload of the sender and the parts, or `EVERYTHING` if they are too long."""
    text = ",".join(sorted(parts))
    return f"{sender} {text if len(text) < MOST_BYTES else EVERYTHING}"


class Notifier:
    """Collects the parts of notifications on one channel.

    `take` gives the payload to send now, if any; a thread sends the trailing one.
    """

    def __init__(self, database: Database, channel: str) -> None:
        self._database = database
        self._channel = channel
        self._throttle = Throttle(INTERVAL)
        self._lock = threading.Condition()
        self._pending: set[str] = set()
        self._thread: threading.Thread | None = None
        self.sender = uuid4().hex[:12]
        """Marks what this process sent, so that it can ignore its own notifications."""
        after_fork(self._forget)

    def _forget(self) -> None:
        self._lock = threading.Condition()
        self._thread = None
        self.sender = uuid4().hex[:12]

    def with_commit(self, parts: Iterable[str]) -> str | None:
        """Return the payload to send with the coming commit, if it is time to send.

        If it is not, pass the parts to `take` after the commit: sent earlier, they would wake nodes too soon. Pending
        parts are included; if the commit fails, pass the payload to `owe`.
        """
        with self._lock:
            if not self._throttle.may_send(monotonic()):
                return None
            self._pending.update(parts)
            return self._payload()

    def owe(self, payload: str) -> None:
        """Send the parts of a payload soon: the commit that should have carried it failed."""
        parts = payload.partition(" ")[2].split(",")
        with self._lock:
            self._pending.update(parts)
            self._throttle.owe()
            self._send_soon()

    def take(self, parts: Iterable[str]) -> str | None:
        """Add parts; return the payload if it is time to send, else None: the trailing notification carries them."""
        with self._lock:
            self._pending.update(parts)
            decision = self._throttle.request(monotonic())
            if decision.action is Action.SEND:
                return self._payload()
            if decision.action is Action.WAIT:
                self._send_soon()
            return None

    def _send_soon(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._trail, name="windlass-notify", daemon=True)
            self._thread.start()
        self._lock.notify()

    def _payload(self) -> str:
        payload = payload_of(self.sender, self._pending)
        self._pending.clear()
        return payload

    def _trail(self) -> None:
        while True:
            with self._lock:
                pending = self._throttle.pending_at
                if self._thread is not threading.current_thread():  # closed
                    return
                self._lock.wait(None if pending is None else max(pending + LEEWAY - monotonic(), 0))
                if not self._throttle.due(monotonic() - LEEWAY):
                    continue
                payload = self._payload()
            try:
                self._database.notify(self._channel, payload)
            except Exception as error:  # noqa: BLE001 - a lost wakeup costs latency; a lost thread would cost all of them
                logger.warning("could not send a notification: %s", type(error).__name__)

    def close(self) -> None:
        """Send what is pending, and end the thread; a later `take` starts another."""
        with self._lock:
            self._thread = None
            payload = self._payload() if self._throttle.flush(monotonic()) else None
            self._lock.notify_all()
        if payload is not None:
            self._database.notify(self._channel, payload)
