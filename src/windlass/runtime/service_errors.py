"""The errors that the services of a process keep meeting, for whoever asks how it is."""

from __future__ import annotations

import asyncio
import threading

from windlass.domain.control_characters import visible
from windlass.errors import StoreUnavailableError

MOST_TEXT = 1_000
"""Characters of what is told of all errors together."""


class ServiceErrors:
    """What each service failed with last, until it works again. Services call it from any thread."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lock = threading.Lock()

    def failed(self, service: str, error: BaseException, text: str) -> None:
        """Keep an error, unless it is an outage: that is waited for, and passes by itself."""
        if not isinstance(error, StoreUnavailableError | OSError | asyncio.CancelledError):
            self.put(service, text)

    def put(self, service: str, text: str | None) -> None:
        """Keep a text in place of the service's last one; None: it works."""
        with self._lock:
            if text is None:
                self._texts.pop(service, None)
            else:
                self._texts[service] = text

    def text(self) -> str | None:
        """All of them in one line that every store takes: heartbeats carry it. None when every service works."""
        with self._lock:
            known = [f"{service}: {' '.join(text.split())}" for service, text in sorted(self._texts.items())]
        line = visible("; ".join(known))[:MOST_TEXT]
        return line.encode(errors="replace").decode() or None
