"""Where a relay finds what is to be delivered: the outbox, and hand-offs to subscribers outside of the database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from windlass import loggers
from windlass.domain.deliveries import HANDOFF, Delivery
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import outbox, remote_handoffs
from windlass.stores.plans.delivery_rows import DueDelivery, Settlement


class DeliverySource(Protocol):
    """The rows of one destination."""

    @property
    def destination(self) -> str:
        """Its name in logs, and that of its lease."""
        ...

    @property
    def logger(self) -> logging.Logger:
        """Where failed deliveries are logged."""
        ...

    def next_due(self, dialect: Dialect, /) -> Plan[int | None]:
        """Return the microseconds until something is due; None if nothing waits."""
        ...

    def due(self, dialect: Dialect, most: int, /, *, latest: bool = False) -> Plan[list[DueDelivery]]:
        """Return up to `most` rows that are due, the earliest first; with `latest` the latest ones."""
        ...

    def settle(self, dialect: Dialect, settlements: Sequence[Settlement], /) -> Plan[int]:
        """Write what became of them; return of how many."""
        ...

    def delivery(self, row: DueDelivery, /) -> Delivery:
        """Return a row as its outlet gets it; raises if it cannot be read."""
        ...


class OutboxSource(NamedTuple):
    """What waits in the outbox for one destination."""

    destination: str
    kind: str
    """The kind of its deliveries."""

    @property
    def logger(self) -> logging.Logger:
        """Where failed deliveries are logged."""
        return loggers.logger("windlass.outbox")

    def next_due(self, dialect: Dialect, /) -> Plan[int | None]:
        """Return the microseconds until something is due."""
        return outbox.next_due(dialect, self.destination)

    def due(self, dialect: Dialect, most: int, /, *, latest: bool = False) -> Plan[list[DueDelivery]]:
        """Return rows that are due."""
        return outbox.due(dialect, self.destination, most, latest=latest)

    def settle(self, dialect: Dialect, settlements: Sequence[Settlement], /) -> Plan[int]:
        """Write what became of them."""
        return outbox.settle_rows(dialect, settlements)

    def delivery(self, row: DueDelivery, /) -> Delivery:
        """Return a row as its outlet gets it."""
        return delivery_of(row, self.kind, row.payload)


class HandoffSource(NamedTuple):
    """What waits for one subscriber of a publication outside of the database."""

    publication: str
    subscriber: str
    decoded: Callable[[str], str]
    """Returns the JSON text of a stored payload."""

    @property
    def destination(self) -> str:
        """Its name in logs, and that of its lease."""
        return handoff_destination(self.publication, self.subscriber)

    @property
    def logger(self) -> logging.Logger:
        """Where failed deliveries are logged."""
        return loggers.logger("windlass.publication")

    def next_due(self, dialect: Dialect, /) -> Plan[int | None]:
        """Return the microseconds until something is due; None also while the subscription is paused."""
        return remote_handoffs.next_due(dialect, self.publication, self.subscriber)

    def due(self, dialect: Dialect, most: int, /, *, latest: bool = False) -> Plan[list[DueDelivery]]:
        """Return hand-offs that are due."""
        return remote_handoffs.due(dialect, self.publication, self.subscriber, most, latest=latest)

    def settle(self, dialect: Dialect, settlements: Sequence[Settlement], /) -> Plan[int]:
        """Write what became of them."""
        return remote_handoffs.settle_rows(dialect, self.publication, self.subscriber, settlements)

    def delivery(self, row: DueDelivery, /) -> Delivery:
        """Return a hand-off as its outlet gets it."""
        return delivery_of(row, HANDOFF, self.decoded(row.payload))


def handoff_destination(publication: str, subscriber: str) -> str:
    """Return the destination of hand-offs to a subscriber."""
    return f"{publication}/{subscriber}"


def delivery_of(row: DueDelivery, kind: str, payload: str) -> Delivery:
    """Return the next try of a row."""
    return Delivery(
        id=UUID(row.id),
        kind=kind,
        name=row.name,
        idempotency_key=row.key,
        tenant=row.tenant,
        correlation_id=row.correlation_id,
        payload=payload,
        attempt=row.attempts + 1,
    )
