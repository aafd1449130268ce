"""What sources of deliveries share: rows that are due, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windlass.stores.dialect import json_text


class DueDelivery(NamedTuple):
    """A row that is to be delivered."""

    id: str
    name: str
    key: str
    tenant: str
    correlation_id: str | None
    payload: str
    attempts: int
    """Number of earlier tries."""
    created_at: int


class Settlement(NamedTuple):
    """What became of a delivery."""

    id: str
    attempts: int
    """Number of attempts that was read: the write is refused if there was another attempt since."""
    reason: str | None = None
    """Why it failed; None: it was delivered."""
    delay_us: int | None = None
    """Delay until the next attempt; None: there is none."""


class Settlements(NamedTuple):
    """Deliveries by what became of them."""

    delivered: list[Settlement]
    postponed: list[Settlement]
    refused: list[Settlement]

    @classmethod
    def of(cls, given: Sequence[Settlement]) -> Settlements:
        """Sort them."""
        failed = [one for one in given if one.reason is not None]
        return cls(
            [one for one in given if one.reason is None],
            [one for one in failed if one.delay_us is not None],
            [one for one in failed if one.delay_us is None],
        )


def settlement_rows(some: Sequence[Settlement]) -> str:
    """Return deliveries as the table `settled_deliveries` reads them, in the order of their ids."""
    return json_text([(one.id, one.attempts, one.delay_us, one.reason) for one in sorted(some)])
