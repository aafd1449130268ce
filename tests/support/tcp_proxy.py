"""A wire between a client and PostgreSQL that can be cut at the worst moment.

That moment is: the statement was forwarded and committed, its answer not yet delivered. Behind the proxy add
`?pooled=true` to the URL: statements then always travel as text, in which a mark can be found.
"""

import contextlib
import socket
import struct
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

READY_FOR_QUERY = b"Z\x00\x00\x00\x05"
"""Ends every answer of the server, but for one letter: I when what was asked is committed, T inside a transaction."""
_RESET = struct.pack("ii", 1, 0)


class TcpProxy:
    """Forwards connections to the server of `url`; `self.url` leads through it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (str(parts.hostname), int(parts.port or 5432))
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        user = f"{parts.username}@" if parts.username else ""
        self.url = urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{port}", query="pooled=true"))
        self._lock = threading.Lock()
        self._mark: bytes | None = None
        self._cuts_left = 0
        self._wires: set[_Wire] = set()
        self.cuts = 0
        """How often a wire was cut so far."""
        self._closed = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="tcp-proxy", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._listening.close()
        for wire in list(self._wires):
            wire.cut()

    def cut_after(self, mark: bytes, times: int = 1) -> None:
        """Cut the wire once the server has done what a message with `mark` asked, before its answer is through."""
        with self._lock:
            self._mark, self._cuts_left = mark, times

    def has_cut(self) -> bool:
        """Whether all cuts that were asked for have been made."""
        with self._lock:
            return self._cuts_left == 0

    def cut_all(self, last_words: bytes = b"") -> None:
        """Cut whatever is connected now; clients find these words on the line, and then that it is broken."""
        for wire in list(self._wires):
            wire.cut(last_words)

    def is_doomed(self, data: bytes) -> bool:
        """Whether this message is one to cut after; each cut is given out once."""
        with self._lock:
            if self._cuts_left and self._mark is not None and self._mark in data:
                self._cuts_left -= 1
                return True
            return False

    def was_cut(self) -> None:
        with self._lock:
            self.cuts += 1

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server, timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            wire = _Wire(self, client, server)
            self._wires.add(wire)
            wire.start()

    def forget(self, wire: "_Wire") -> None:
        self._wires.discard(wire)


class _Wire:
    """One connection: a thread in each direction."""

    def __init__(self, proxy: TcpProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._doomed = False
        self._withheld = b""

    def start(self) -> None:
        for pump in (self._ask, self._answer):
            threading.Thread(target=pump, name="tcp-proxy-wire", daemon=True).start()

    def _ask(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._client.recv(1 << 20):
                if self._proxy.is_doomed(data):
                    self._doomed = True
                self._server.sendall(data)
        self.cut()

    def _answer(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._server.recv(1 << 20):
                if self._doomed:
                    self._withheld += data
                    if self._withheld[-6:-1] == READY_FOR_QUERY:
                        self._proxy.was_cut()
                        break
                else:
                    self._client.sendall(data)
        self.cut()

    def cut(self, last_words: bytes = b"") -> None:
        """Reset both ends: no goodbye, as when a cable is pulled."""
        if last_words:
            with contextlib.suppress(OSError):
                self._client.sendall(last_words)
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                end.close()
        self._proxy.forget(self)
