"""A wire between a client and PostgreSQL that can be cut at the worst moment, fall silent, or be slow.

That moment is: the statement was forwarded and committed, its answer not yet delivered; or: it never got through.
`url` says `pooled=true`: statements then always travel as text, in which a mark can be found.
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
        netloc = f"{user}127.0.0.1:{port}"
        self.url = urlunsplit(parts._replace(netloc=netloc, query="pooled=true"))
        self.unpooled_url = urlunsplit(parts._replace(netloc=netloc))
        """The same for connections that need no marks, and listen."""
        self._lock = threading.Lock()
        self._mark: bytes | None = None
        self._final: bytes | None = None
        self._lets_through = True
        self._cuts_left = 0
        self._silent = False
        self.delay = 0.0
        """Seconds that everything takes on its way, each way."""
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

    def cut_after(self, mark: bytes, times: int = 1, *, final: bytes | None = None) -> None:
        """Cut the wire once the server has done what a message with `mark` asked, before its answer is through.

        With `final`, what is cut is the next message with it on a wire that carried the mark: `COMMIT`.
        """
        with self._lock:
            self._mark, self._cuts_left, self._final, self._lets_through = mark, times, final, True

    def cut_before(self, mark: bytes, times: int = 1, *, final: bytes | None = None) -> None:
        """Cut the wire when such a message comes, which never gets to the server."""
        self.cut_after(mark, times, final=final)
        self._lets_through = False

    def stop_forwarding(self) -> None:
        """A black hole: lines stay open, nothing gets through any more, on new ones neither."""
        self._silent = True
        for wire in list(self._wires):
            wire.silent = True

    def forward_again(self) -> None:
        """New lines work. Old ones stay silent for ever: a wait on them never ends."""
        self._silent = False

    def has_cut(self) -> bool:
        """Whether all cuts that were asked for have been made."""
        with self._lock:
            return self._cuts_left == 0

    def cut_all(self, last_bytes: bytes = b"") -> None:
        """Cut all current connections; clients receive these bytes, and then the connection is broken."""
        for wire in list(self._wires):
            wire.cut(last_bytes)

    def is_doomed(self, wire: "_Wire", data: bytes) -> bool:
        """Whether this message is one to cut at; each cut is given out once."""
        with self._lock:
            if not self._cuts_left or self._mark is None:
                return False
            if self._final is not None and self._mark in data:
                wire.marked = True
            doomed = (self._mark in data) if self._final is None else (wire.marked and self._final in data)
            self._cuts_left -= doomed
            return doomed

    @property
    def lets_through(self) -> bool:
        """Whether a message to cut at still gets to the server."""
        return self._lets_through

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
                server = socket.create_connection(self._server, timeout=60)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            wire = _Wire(self, client, server)
            wire.silent = self._silent
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
        self.silent = False
        self.marked = False

    def start(self) -> None:
        for pump in (self._ask, self._answer):
            threading.Thread(target=pump, name="tcp-proxy-wire", daemon=True).start()

    def _ask(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._client.recv(1 << 20):
                if self._proxy.is_doomed(self, data):
                    if not self._proxy.lets_through:
                        self._proxy.was_cut()
                        break
                    self._doomed = True
                self._forward(self._server, data)
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
                    self._forward(self._client, data)
        self.cut()

    def _forward(self, end: socket.socket, data: bytes) -> None:
        if self._proxy.delay:
            threading.Event().wait(self._proxy.delay)
        if not self.silent:
            end.sendall(data)

    def cut(self, last_bytes: bytes = b"") -> None:
        """Reset both ends: no goodbye, as when a cable is pulled."""
        if last_bytes:
            with contextlib.suppress(OSError):
                self._client.sendall(last_bytes)
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                end.close()
        self._proxy.forget(self)
