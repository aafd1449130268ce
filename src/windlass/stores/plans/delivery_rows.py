"""What sources of deliveries share: rows that are due, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windlass.stores.dialect import json_text
from windlass.stores.plan import Plan, Step


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
    """As it was read: the write is refused if there was another try meanwhile."""
    reason: str | None = None
    """Why it failed; None: it was delivered."""
    delay_us: int | None = None
    """Until the next try; None: it is over."""


class SettleSteps(NamedTuple):
    """The statements of one source."""

    delivered: str
    postponed: str
    refused: str


def settle(settlements: Sequence[Settlement], steps: SettleSteps) -> Plan[int]:
    """Write what became of deliveries; return of how many: others were settled by another relay."""
    delivered = [one for one in settlements if one.reason is None]
    postponed = [one for one in settlements if one.reason is not None and one.delay_us is not None]
    refused = [one for one in settlements if one.reason is not None and one.delay_us is None]
    written = 0
    for step, some in zip(steps, (delivered, postponed, refused), strict=True):
        if some:
            rows = [(one.id, one.attempts, one.delay_us, one.reason) for one in sorted(some)]
            written += yield Step(step, {"rows": json_text(rows)})
    return written
