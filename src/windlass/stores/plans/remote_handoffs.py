"""Plans for hand-offs to subscribers outside of the database: read when they are due, and settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans.delivery_rows import DueDelivery, Settlement, SettleSteps, settle

STEPS: Final = SettleSteps("admit_remote_handoffs", "postpone_remote_handoffs", "refuse_remote_handoffs")


def next_due(dialect: Dialect, publication: str, subscriber: str) -> Plan[int | None]:
    """Return the microseconds until a hand-off is due; None if there is none, or the subscription is paused."""
    del dialect
    row = yield Step("next_remote_due", {"publication": publication, "subscriber": subscriber}, alone=True)
    return None if row is None else int(row[0])


def due(dialect: Dialect, publication: str, subscriber: str, most: int) -> Plan[list[DueDelivery]]:
    """Return hand-offs that are due, in their order."""
    del dialect
    names = {"publication": publication, "subscriber": subscriber}
    rows = yield Step("due_remote_handoffs", names, literals={"most": most})
    return [DueDelivery._make(row) for row in rows]


def settle_rows(dialect: Dialect, settlements: Sequence[Settlement]) -> Plan[int]:
    """Write what became of hand-offs: admitted, rejected, or tried again later."""
    del dialect
    return (yield from settle(settlements, STEPS))
