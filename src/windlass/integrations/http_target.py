"""Deliveries over HTTP: one POST each, whose status says whether it was taken."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from windlass.domain.clock import SystemClock, monotonic
from windlass.domain.deliveries import Delivery
from windlass.domain.delivery_outcomes import AT_ONCE, LONGEST_ASKED
from windlass.domain.durations import seconds
from windlass.errors import InvalidOptionError
from windlass.integrations.extras import require
from windlass.retry_signals import DoNotRetry, RetryAfter

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

LATER: Final = frozenset({408, 425, 429})
"""Statuses of the client's errors that may go away."""
LONGEST_TIMEOUT: Final = 300.0
MOST_READ: Final = 65_536
"""Number of bytes of an answer's body that are read, so that its connection can be used again."""
LONGEST_BODY: Final = 1.0
"""Seconds for which the rest of an answer is read: its status already decides the outcome."""
_LOGGERS: Final = ("connection", "connectionpool", "poolmanager", "response", "util.retry")
"""Loggers of urllib3 that log whole URLs."""
_OWN: Final = frozenset(
    {
        "content-length",
        "content-type",
        "idempotency-key",
        "transfer-encoding",
        "windlass-attempt",
        "windlass-correlation-id",
        "windlass-kind",
        "windlass-name",
        "windlass-tenant",
    }
)
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VISIBLE: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "%")


class HttpTarget:
    """A destination that takes deliveries by HTTP POST: `publish("invoices", to={"crm": HttpTarget("https://…/hook")})`.

    The body is the item as JSON. `Idempotency-Key` is the same each time a delivery is tried; `Windlass-Tenant`,
    `Windlass-Correlation-Id`, `Windlass-Kind`, `Windlass-Name` and `Windlass-Attempt` say what it is. Any 2xx takes it.
    Statuses from 400 to 499 refuse it for good, but 408, 425, 429 and answers that have `Retry-After`; everything else
    is tried again, after `Retry-After` if the answer has it. Redirects are not followed. `headers` (the receiver's
    password, say) and what follows the host in the URL are in no log and no error. Needs the extra `http`.

    ```python
    crm = HttpTarget("https://crm.example.com/hooks/7", headers={"Authorization": f"Bearer {token}"})
    orders.publish("invoices", to={"crm": crm})
    ```
    """

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, timeout: float | timedelta = 10.0
    ) -> None:
        self._url, self._host = _checked_url(url)
        self._headers = _checked_headers(headers)
        self._limit = _checked_timeout(timeout)
        require("urllib3", "http", "HttpTarget")
        self._lock = threading.Lock()
        self._pool: PoolManager | None = None

    @property
    def timeout(self) -> float:
        """Seconds after which a call counts as failed: connecting and the answer may each take up to `timeout`."""
        return self._limit * 2 + LONGEST_BODY + 1

    def __repr__(self) -> str:
        return f"HttpTarget({self._host!r})"

    def deliver(self, delivery: Delivery, /) -> None:
        """Post a delivery; called by the relay."""
        try:
            with _without_logs():
                answer = self._post(delivery)
                self._reuse_or_close(answer)
        except Exception as error:  # noqa: BLE001 - whatever urllib3 and the standard library raise
            # Its text may have the URL or a header, which may hold a secret.
            raise ConnectionError(f"{self._host} gave no answer: {_named(error)}") from None
        self._judge(answer.status, answer.headers.get("Retry-After"))

    def _post(self, delivery: Delivery) -> BaseHTTPResponse:
        from urllib3 import Timeout

        return self._connections().request(
            "POST",
            self._url,
            body=delivery.payload.encode(),
            headers={**self._headers, **delivery_headers(delivery)},
            redirect=False,
            retries=False,
            timeout=Timeout(connect=self._limit, read=self._limit),
            preload_content=False,
        )

    def _reuse_or_close(self, answer: BaseHTTPResponse) -> None:
        """Let the connection of an answer be used again if its body is short and sound, else close it.

        What is wrong with a body changes nothing about the status: what was taken would be delivered again for ever.
        """
        sock = getattr(answer.connection, "sock", None)
        try:
            if sock is not None and _is_read(answer, sock):
                sock.settimeout(self._limit)
                answer.release_conn()
                return
        except Exception:  # noqa: BLE001, S110 - whatever a stranger sends: the connection is closed
            pass
        answer.close()

    def _judge(self, status: int, retry_after: str | None) -> None:
        if 200 <= status < 300:
            return
        text = f"{self._host} answered {status}"
        if 300 <= status < 400:
            raise ConnectionError(f"{text}, a redirect, which is not followed")
        if (asked := seconds_of(retry_after, SystemClock().now())) is not None:
            raise RetryAfter(asked, text)
        if 400 <= status < 500 and status not in LATER:
            raise DoNotRetry(text)
        raise ConnectionError(text)

    def _connections(self) -> PoolManager:
        from urllib3 import PoolManager

        with self._lock:
            if self._pool is None:
                for name in _LOGGERS:
                    logging.getLogger(f"urllib3.{name}").addFilter(_URL_FILTER)
                self._pool = PoolManager(num_pools=1, maxsize=AT_ONCE, block=False)
            return self._pool


def _is_read(answer: BaseHTTPResponse, sock: Any) -> bool:
    """Read the body of an answer, and return whether that was all of it."""
    left, until = MOST_READ, monotonic() + LONGEST_BODY
    while left > 0 and (remaining := until - monotonic()) > 0:
        sock.settimeout(remaining)
        read = len(answer.read1(left, decode_content=False))
        if read == 0:
            return True
        left -= read
    return False


class _UrlFilter(logging.Filter):
    """Drops what urllib3 logs of a delivery: it has the whole URL, which may hold a secret."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        del record
        return not getattr(self.thread, "delivers", False)


_URL_FILTER: Final = _UrlFilter()


@contextmanager
def _without_logs() -> Iterator[None]:
    _URL_FILTER.thread.delivers = True
    try:
        yield
    finally:
        _URL_FILTER.thread.delivers = False


def delivery_headers(delivery: Delivery) -> dict[str, str]:
    """Return the headers of a delivery. Characters that a header cannot hold, and `%`, are percent-encoded as UTF-8."""
    given = {
        "Content-Type": "application/json",
        "Idempotency-Key": delivery.idempotency_key,
        "Windlass-Tenant": delivery.tenant,
        "Windlass-Correlation-Id": delivery.correlation_id,
        "Windlass-Kind": delivery.kind,
        "Windlass-Name": delivery.name,
        "Windlass-Attempt": str(delivery.attempt),
    }
    return {name: quote(value, safe=_VISIBLE) for name, value in given.items() if value is not None}


def seconds_of(retry_after: str | None, now: datetime) -> float | None:
    """Return the seconds that a `Retry-After` asks for, a number or a date, up to an hour; None if it is neither."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:10]), LONGEST_ASKED)
    try:
        until = parsedate_to_datetime(text)
        asked = ((until if until.tzinfo is not None else until.replace(tzinfo=UTC)) - now).total_seconds()
    except Exception:  # noqa: BLE001 - the parser raises anything for what a stranger sends
        return None
    return min(max(asked, 0.0), LONGEST_ASKED)


def _named(error: BaseException) -> str:
    reason = getattr(error, "reason", None)
    return type(reason if isinstance(reason, BaseException) else error).__name__


def _checked_url(url: Any) -> tuple[str, str]:
    """Return a URL, and what of it may be shown."""
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isprintable() and " " not in url else None
        host = parts.hostname if parts is not None else None
        port = parts.port if parts is not None else None
    except ValueError:
        parts, host, port = None, None, None
    if parts is None or parts.scheme not in ("http", "https") or not host:
        raise InvalidOptionError(
            f"HttpTarget: url must be a text that begins with https:// or http:// and names a host, got a "
            f"{type(url).__name__} that does not; e.g. https://crm.example.com/hooks/7"
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidOptionError(
            "HttpTarget: url must have no user name and password; pass them as a header: "
            "headers=urllib3.make_headers(basic_auth='user:password')"
        )
    return str(url), f"{parts.scheme}://{host}" + ("" if port is None else f":{port}")


def _checked_headers(headers: Any) -> dict[str, str]:
    if headers is None:
        return {}
    given: dict[Any, Any] = dict(headers) if isinstance(headers, Mapping) else {None: None}
    for name, value in given.items():
        if not _is_header(name) or not _TOKEN.fullmatch(name) or not _is_header(value) or name.lower() in _OWN:
            raise InvalidOptionError(
                "HttpTarget: headers must be a mapping of texts to texts of ASCII characters, e.g. "
                f"{{'Authorization': 'Bearer …'}}, without those that every delivery has ({', '.join(sorted(_OWN))}); "
                f"the header {name!r} is not allowed"
            )
    return given


def _is_header(text: Any) -> bool:
    return isinstance(text, str) and bool(text) and text.isascii() and text.isprintable()


def _checked_timeout(timeout: Any) -> float:
    given = seconds(timeout, "HttpTarget: timeout")
    if not 0 < given <= LONGEST_TIMEOUT:
        raise InvalidOptionError(
            f"HttpTarget: timeout must be more than 0 and at most {LONGEST_TIMEOUT:g} seconds, got {timeout!r}"
        )
    return given
