"""Plans for hand-offs to subscribers outside of the database: read when they are due, and settled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from windlass.domain.publication import REMOTE, SubscriptionRow
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import handoffs
from windlass.stores.plans.delivery_rows import DueDelivery, Settlement, Settlements, settlement_rows
from windlass.stores.plans.handoffs import HandoffCount


def next_due(dialect: Dialect, publication: str, subscriber: str) -> Plan[int | None]:
    """Return the microseconds until a hand-off is due; None if there is none, or the subscription is paused."""
    del dialect
    row = yield Step("next_remote_due", {"publication": publication, "subscriber": subscriber}, alone=True)
    return None if row is None else int(row[0])


def due(
    dialect: Dialect, publication: str, subscriber: str, most: int, *, latest: bool = False
) -> Plan[list[DueDelivery]]:
    """Return hand-offs that are due, those first that have been for longest, or with `latest` the other way round."""
    del dialect
    names = {"publication": publication, "subscriber": subscriber}
    name = "latest_due_remote_handoffs" if latest else "due_remote_handoffs"
    rows = yield Step(name, names, literals={"most": most})
    return [DueDelivery._make(row) for row in rows]


def settle_rows(dialect: Dialect, publication: str, subscriber: str, settlements: Sequence[Settlement]) -> Plan[int]:
    """Write what became of hand-offs (admitted, rejected, or tried again later), and count it."""
    del dialect
    delivered, postponed, refused = Settlements.of(settlements)
    waits: list[int] = []
    later = rejected = 0
    if delivered:
        rows = yield Step("admit_remote_handoffs", {"rows": settlement_rows(delivered)})
        waits = [row[0] for row in rows]
    if postponed:
        later = yield Step("postpone_remote_handoffs", {"rows": settlement_rows(postponed)})
    if refused:
        rejected = yield Step("refuse_remote_handoffs", {"rows": settlement_rows(refused)})
    counts = HandoffCount(len(waits), 0, rejected, later, sum(waits), drained=len(waits) + rejected)
    yield from handoffs.count(SubscriptionRow(publication, subscriber, REMOTE), counts)
    return len(waits) + later + rejected


def revive(dialect: Dialect, ids: Sequence[str]) -> Plan[int]:
    """Let hand-offs that were refused for good wait again, due now; return how many.

    One whose key another has taken since is left out. No two of them may have the same key.
    """
    rows = yield Step("revive_handoffs", {"ids": dialect.ids(sorted(ids))})
    revived = Counter((row[0], row[1]) for row in rows)
    for subscription in sorted(revived):
        yield from handoffs.count(SubscriptionRow(*subscription, REMOTE), HandoffCount(delayed=revived[subscription]))
    return revived.total()
