"""The current errors of a process's services, for health reports."""

from __future__ import annotations

import asyncio
import threading

from windlass.domain.control_characters import visible
from windlass.errors import StoreUnavailableError

MAX_TEXT = 1_000
"""Longest text, in characters, of all errors together."""


class ServiceErrors:
    """The last error of each service until it works again. May be called from any thread."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lock = threading.Lock()

    def failed(self, service: str, error: BaseException, text: str) -> None:
        """Record an error, unless it is a database outage: services wait for its end by themselves."""
        if not isinstance(error, StoreUnavailableError | OSError | asyncio.CancelledError):
            self.put(service, text)

    def put(self, service: str, text: str | None) -> None:
        """Replace the service's text; None clears it."""
        with self._lock:
            if text is None:
                self._texts.pop(service, None)
            else:
                self._texts[service] = text

    def text(self) -> str | None:
        """Return all errors in one line that every store accepts, as heartbeats carry it; None if there are none."""
        with self._lock:
            known = [f"{service}: {' '.join(text.split())}" for service, text in sorted(self._texts.items())]
        line = visible("; ".join(known))[:MAX_TEXT]
        return line.encode(errors="replace").decode() or None
