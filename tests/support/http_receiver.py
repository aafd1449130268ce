"""A real HTTP server on loopback that answers as a test says: statuses, stalls, dropped connections."""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: str

    @property
    def key(self) -> str:
        return self.headers["Idempotency-Key"]


class Answer(NamedTuple):
    status: int = 200
    headers: Mapping[str, str] = {}
    stalls: bool = False
    """Whether nothing is answered until the receiver is closed."""
    drips: bool = False
    """Whether it says until the receiver is closed that its answer will come."""
    drops: bool = False
    """Whether the connection is closed without an answer."""
    body: bytes = b"{}"


Decide = Callable[[Request], Answer]


class Receiver:
    """Counts what it gets; `decide` says what it answers."""

    def __init__(self, decide: Decide = lambda request: Answer()) -> None:
        self.decide = decide
        self.requests: list[Request] = []
        self.admitted: Counter[str] = Counter()
        """How often each key was new: a receiver that knows a key answers 200 and does nothing."""
        self.changed = threading.Condition()
        self.released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook?token=hunter2"

    def wait_for(self, count: int, timeout: float = 90.0) -> None:
        """Wait until so many requests have come."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, timeout), (
                f"{len(self.requests)} of {count} requests came"
            )

    def wait_admitted(self, count: int, timeout: float = 90.0) -> None:
        """Wait until so many keys were admitted."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.admitted) >= count, timeout), (
                f"{len(self.admitted)} of {count} keys were admitted"
            )

    def keys(self) -> list[str]:
        with self.changed:
            return [request.key for request in self.requests]

    def got(self, request: Request, answer: Answer) -> None:
        with self.changed:
            self.requests.append(request)
            taken = 200 <= answer.status < 300 and not (answer.drops or answer.stalls or answer.drips)
            if taken and request.headers.get("Idempotency-Key"):
                known = request.key in self.admitted
                self.admitted[request.key] += 0 if known else 1
            self.changed.notify_all()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: connections are cut on purpose."""


def _handler_of(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            request = Request(self.path, dict(self.headers.items()), body)
            answer = receiver.decide(request)
            receiver.got(request, answer)
            if answer.stalls:
                receiver.released.wait(600)
            while answer.drips and not receiver.released.wait(0.02):
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if answer.stalls or answer.drops:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def do_GET(self) -> None:
            """Count a redirect that was followed."""
            self.do_POST()

        def log_request(self, code: object = "-", size: object = "-") -> None:
            pass

    return Handler


@contextmanager
def receiving(decide: Decide = lambda request: Answer()) -> Iterator[Receiver]:
    receiver = Receiver(decide)
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.close()


def free_port() -> int:
    """A port of loopback on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
