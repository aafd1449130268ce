"""The outlet of the rejects of one pipeline: what the outbox has of them becomes what their sink takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from windlass.domain.deliveries import Delivery
from windlass.domain.reject import Reject
from windlass.errors import SerializationError
from windlass.pipelines.item_values import Values
from windlass.pipelines.outlets import deliver_to, timeout_of
from windlass.pipelines.reject_records import RejectPayload, payload_of, reject_value
from windlass.pipelines.reject_sinks import OutletSink, delivery_of_reject, reject_to
from windlass.spi import RejectSink


class SinkOfVersion(NamedTuple):
    """The sink of one version of a pipeline, and what decodes its items."""

    sink: RejectSink
    hash: str
    values: Values


class RejectOutlet:
    """Passes rejects to the sink of their version; those of a version that is not here go to the one declared last."""

    def __init__(self, sinks: Mapping[str, SinkOfVersion]) -> None:
        self._sinks = sinks
        """Sinks by version, the last declared one at the end."""
        self.timeout = max(_timeout(one.sink) for one in sinks.values())

    def deliver(self, delivery: Delivery, /) -> None:
        """Pass a reject on."""
        given = msgspec.json.decode(delivery.payload, type=RejectPayload)
        chosen = self._sinks.get(given.version) or list(self._sinks.values())[-1]
        reject = _reject(delivery.name, given, chosen)
        if isinstance(chosen.sink, OutletSink):
            deliver_to(chosen.sink.outlet, delivery_of_reject(reject, delivery.attempt))
        else:
            reject_to(chosen.sink, reject)


def _reject(pipeline: str, given: RejectPayload, of: SinkOfVersion) -> Reject:
    return reject_value(given.envelope, given.id, pipeline, given.item, given.at, _payload(given, of), None)


def _payload(given: RejectPayload, of: SinkOfVersion) -> Any:
    """Return the item; None if it was not kept, or only steps that are not here any more knew its type."""
    if given.payload is None or given.hash != of.hash:
        return None
    try:
        return payload_of(of.values, given.type, given.payload)
    except SerializationError:
        return None


def _timeout(sink: RejectSink) -> float:
    outlet: Any = sink.outlet if isinstance(sink, OutletSink) else sink
    return timeout_of(outlet)
