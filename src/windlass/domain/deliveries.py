"""Deliveries: what is passed on to destinations outside of the database, and under which key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

HANDOFF: Final = "handoff"
DEAD_LETTER: Final = "dead_letter"
REJECT: Final = "reject"
"""The kinds of deliveries: an item of a publication, a dead letter, a reject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One thing to be delivered outside of the database, as an outlet gets it.

    It may come again: after a failure, and after a crash between its delivery and the note of it. The idempotency key
    is the same each time; the receiver drops deliveries with a key that it has already seen.

    ```python
    def to_crm(delivery: Delivery) -> None:
        crm.upsert(delivery.idempotency_key, delivery.json())
    ```
    """

    id: UUID
    """Id of the stored row, as logs and errors name it."""
    kind: str
    """`handoff` (an item of a publication), `dead_letter` or `reject`."""
    name: str
    """The publication; of a reject its pipeline; of a dead letter its pipeline or the target of its job."""
    idempotency_key: str
    """The same for each try: of a hand-off its key, which is unique for a publication and tenant."""
    tenant: str
    correlation_id: str | None
    payload: str
    """The item, or the envelope, as JSON text."""
    attempt: int
    """Number of this try, from 1."""

    def json(self) -> Any:
        """Return the payload decoded."""
        return json.loads(self.payload)
