"""Deliveries into a queue of Amazon SQS: one message each."""

from __future__ import annotations

import hashlib
import threading
from typing import Any, Final
from urllib.parse import urlsplit

from windlass.domain.deliveries import Delivery
from windlass.domain.delivery_outcomes import AT_ONCE
from windlass.errors import InvalidOptionError
from windlass.integrations.extras import require
from windlass.retry_signals import DoNotRetry

FIFO: Final = ".fifo"
CALL_TIMEOUT: Final = 10.0
REFUSALS: Final = frozenset({"InvalidMessageContents", "InvalidParameterValue", "MessageTooLong"})
"""Codes of errors about the message itself: it would be refused again."""
_BATCH_GROUP: Final = "windlass"


class SqsTarget:
    """A queue that takes deliveries as messages: `publish("invoices", to={"crm": SqsTarget(queue_url)})`.

    The body is the item as JSON; the attributes `IdempotencyKey`, `Tenant`, `CorrelationId`, `Kind`, `Name` and
    `Attempt` say what it is. On a FIFO queue the deduplication id follows from kind, name, tenant and key, and the
    messages of a tenant are one group. `client` replaces the client that boto3 makes from `options`, e.g.
    `region_name="eu-central-1"`; credentials come from where boto3 finds them. Needs the extra `sqs`.

    ```python
    queue = SqsTarget("https://sqs.eu-central-1.amazonaws.com/123456789012/rejects", region_name="eu-central-1")
    orders = app.pipeline("orders", sink=queue)
    ```
    """

    timeout = 4 * CALL_TIMEOUT
    """Seconds after which a call counts as failed."""

    def __init__(self, queue_url: str, *, client: Any = None, **options: Any) -> None:
        self._url = _checked_url(queue_url)
        self._name = urlsplit(self._url).path.rpartition("/")[2]
        if client is None:
            require("boto3", "sqs", "SqsTarget")
        self._options = options
        self._lock = threading.Lock()
        self._client = client

    def __repr__(self) -> str:
        return f"SqsTarget({self._name!r})"

    def deliver(self, delivery: Delivery, /) -> None:
        """Send a delivery; called by the relay."""
        message: dict[str, Any] = {
            "QueueUrl": self._url,
            "MessageBody": delivery.payload,
            "MessageAttributes": message_attributes(delivery),
        }
        if self._name.endswith(FIFO):
            group = hashlib.sha256(f"{_BATCH_GROUP}\0{delivery.tenant}".encode()).hexdigest()
            message |= {"MessageGroupId": group, "MessageDeduplicationId": deduplication_id(delivery)}
        try:
            self._connected().send_message(**message)
        except Exception as error:  # noqa: BLE001 - whatever boto3 raises
            # Its text may have the URL, and whatever the service quotes of the message.
            code = _code_of(error)
            if code in REFUSALS:
                raise DoNotRetry(f"queue {self._name} refused the message: {code}") from None
            raise ConnectionError(f"queue {self._name} did not take the message: {code}") from None

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                import boto3
                from botocore.config import Config

                options = dict(self._options)  # a client that cannot be made is made again, with the same ones
                limits = Config(
                    connect_timeout=CALL_TIMEOUT,
                    read_timeout=CALL_TIMEOUT,
                    retries={"total_max_attempts": 1},
                    max_pool_connections=AT_ONCE,
                )
                config = limits.merge(given) if (given := options.pop("config", None)) is not None else limits
                self._client = boto3.session.Session().client("sqs", config=config, **options)
            return self._client


def message_attributes(delivery: Delivery) -> dict[str, dict[str, str]]:
    """Return the message attributes of a delivery."""
    given = {
        "IdempotencyKey": delivery.idempotency_key,
        "Tenant": delivery.tenant,
        "CorrelationId": delivery.correlation_id,
        "Kind": delivery.kind,
        "Name": delivery.name,
        "Attempt": str(delivery.attempt),
    }
    return {name: {"DataType": "String", "StringValue": value} for name, value in given.items() if value}


def deduplication_id(delivery: Delivery) -> str:
    """Return what makes a repeated message known to a FIFO queue."""
    parts = (delivery.kind, delivery.name, delivery.tenant, delivery.idempotency_key)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _code_of(error: BaseException) -> str:
    response = getattr(error, "response", None)
    if isinstance(response, dict) and isinstance(found := response.get("Error"), dict):
        return str(found.get("Code", "")).rpartition(".")[2] or type(error).__name__
    return type(error).__name__


def _checked_url(url: Any) -> str:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or not parts.path.strip("/"):
        raise InvalidOptionError(
            "SqsTarget: queue_url must be the URL of a queue, e.g. "
            f"https://sqs.eu-central-1.amazonaws.com/123456789012/orders, got {_shown(url)}"
        )
    return str(url)


def _shown(url: Any) -> str:
    return repr(url) if isinstance(url, str) and "@" not in url else type(url).__name__
