"""What is told of circuits."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.domain.clock import from_micros
from windlass.events.types import CircuitClosed, CircuitOpened, Event
from windlass.stores.plans.limits import CircuitChange


def circuit_events(changes: Sequence[CircuitChange]) -> list[Event]:
    """An event for each that opened or closed."""
    return [
        (CircuitOpened if change.opened else CircuitClosed)(at=from_micros(change.now), service=change.service)
        for change in changes
    ]
