"""Sinks of rejects: the store, the log, a ring in memory, and functions of the user."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec

from windlass import loggers
from windlass.domain.deliveries import REJECT, Delivery
from windlass.domain.reject import Reject, SinkFailure
from windlass.errors import InvalidOptionError
from windlass.pipelines.outlets import deliver_to, refuse_async, refuse_awaitable
from windlass.spi import Outlet, RejectSink

logger = loggers.logger("windlass.rejects")

RING: Final = 512
"""Number of rejects that a `MemorySink` keeps."""


class StoreSink:
    """Keeps rejects in the store alone, in the transaction of their step; the default."""

    durable = True

    def reject(self, reject: Reject) -> None:
        """Do nothing: the store has it."""


class LogSink:
    """Writes every reject to the logger `windlass.rejects`, with its envelope as JSON; the store keeps none.

    It is not durable: a worker refuses to start with it where items may be lost (see `pipelines.production`).
    """

    durable = False

    def reject(self, reject: Reject) -> None:
        """Log a reject."""
        logger.warning(
            "execution %s: step %s of pipeline %s rejected an item, and goes on without it: %s; envelope: %s",
            *(reject.execution_id, reject.step_name, reject.pipeline, reject.error_message),
            json.dumps(reject.envelope(), default=repr, ensure_ascii=False),
        )


class MemorySink:
    """Keeps the latest 512 rejects in the memory of this process, for tests and trials; the store keeps none.

    It is not durable: a worker refuses to start with it where items may be lost (see `pipelines.production`).
    """

    durable = False

    def __init__(self) -> None:
        self._ring: deque[Reject] = deque(maxlen=RING)

    @property
    def rejects(self) -> list[Reject]:
        """The rejects, oldest first."""
        return list(self._ring)

    def reject(self, reject: Reject) -> None:
        """Keep a reject, and drop the oldest one if there are too many."""
        self._ring.append(reject)


class FunctionSink:
    """Calls a function with every reject; the store keeps them as well."""

    durable = True

    def __init__(self, function: Callable[[Reject], object]) -> None:
        self.function = function

    def reject(self, reject: Reject) -> None:
        """Call the function."""
        refuse_awaitable(self.function(reject), self.function)


class OutletSink:
    """Passes every reject to an outlet, as the JSON of its envelope; the store keeps them as well."""

    durable = True

    def __init__(self, outlet: Outlet) -> None:
        self.outlet = outlet

    def reject(self, reject: Reject) -> None:
        """Deliver a reject, before the commit: what comes from the outbox goes to the outlet itself."""
        deliver_to(self.outlet, delivery_of_reject(reject, 1))


def delivery_of_reject(reject: Reject, attempt: int) -> Delivery:
    """Return a reject as an outlet gets it."""
    return Delivery(
        id=reject.id,
        kind=REJECT,
        name=reject.pipeline,
        idempotency_key=str(reject.id),
        tenant=reject.tenant_id,
        correlation_id=reject.correlation_id,
        payload=json.dumps({"id": str(reject.id), **reject.envelope()}, default=_plain, ensure_ascii=False),
        attempt=attempt,
    )


def _plain(value: object) -> object:
    """Return a value as JSON has it; by its `repr` where JSON has nothing like it."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=repr)


STORE: Final = StoreSink()
QUICK: Final = (StoreSink, LogSink, MemorySink)
"""Sinks that do not block."""


def reject_to(sink: RejectSink, reject: Reject) -> None:
    """Pass a reject to a sink; raises what it raises, and `TypeError` if it has done nothing yet."""
    returned: object = sink.reject(reject)  # type: ignore[func-returns-value] # users' code: it may return something
    refuse_awaitable(returned, sink)


def destination_of(pipeline: str) -> str:
    """Return the destination of a pipeline's rejects in the outbox, which all of its versions share."""
    return f"rejects of {pipeline}"


def is_fed(sink: RejectSink, failure: SinkFailure) -> bool:
    """Return whether a sink gets its rejects from the outbox: one outside of the store that loses none."""
    return sink.durable and failure is SinkFailure.CONTINUE and not isinstance(sink, QUICK)


_BY_NAME: Final[dict[str, Callable[[], RejectSink]]] = {"store": lambda: STORE, "log": LogSink, "memory": MemorySink}


def sink_of_name(name: str) -> RejectSink:
    """Return the sink that a setting names."""
    return _BY_NAME[name]()


def checked_sink(value: Any) -> RejectSink | None:
    """Return what was given as a sink; a name and a function become one."""
    if value is None:
        return None
    if isinstance(value, str) and value in _BY_NAME:
        return sink_of_name(value)
    if not isinstance(value, str | type):
        if callable(getattr(value, "reject", None)) and isinstance(getattr(value, "durable", None), bool):
            refuse_async(value.reject, "sink: its method reject")
            sink: RejectSink = value
            return sink
        if callable(getattr(value, "deliver", None)):
            refuse_async(value.deliver, "sink: its method deliver")
            return OutletSink(value)
        if callable(value):
            refuse_async(value, "sink")
            return FunctionSink(value)
    raise InvalidOptionError(
        "sink must be a function that takes a Reject, an object with `durable` (True or False) and `reject(reject)`, "
        "e.g. windlass.LogSink(), an outlet, e.g. windlass.SqsTarget(queue_url), or one of the names "
        f"{', '.join(_BY_NAME)}; got {value!r}"
    )
