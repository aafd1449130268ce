"""Plans for the outbox: what is to be delivered outside of the database, to providers of dead letters and to sinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.identity import new_job_id
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans.dead_letters import Purged
from windlass.stores.plans.delivery_rows import DueDelivery, Settlement, Settlements, settlement_rows

MOST_COUNTED: Final = 1_000
"""Number of rows of one destination that are counted."""
MOST_DESTINATIONS: Final = 100


class OutboxRow(NamedTuple):
    """Something to be delivered, about to be stored."""

    channel: str
    """`dead_letter` or `reject`."""
    about: str
    """Its idempotency key."""
    destination: str
    name: str
    tenant: str
    correlation_id: str | None
    payload: str


def store(dialect: Dialect, rows: Sequence[OutboxRow]) -> Plan[None]:
    """Store what is to be delivered, in the transaction of what it is about."""
    del dialect
    yield Step("insert_outbox", {"rows": json_text([(new_job_id(), *row) for row in rows])})


def next_due(dialect: Dialect, destination: str) -> Plan[int | None]:
    """Return the microseconds until a delivery is due; None if there is none."""
    del dialect
    row = yield Step("next_outbox_due", {"destination": destination}, alone=True)
    return None if row is None else int(row[0])


def due(dialect: Dialect, destination: str, most: int, *, latest: bool = False) -> Plan[list[DueDelivery]]:
    """Return deliveries that are due, those first that have been for longest, or with `latest` the other way round."""
    del dialect
    name = "latest_due_outbox" if latest else "due_outbox"
    rows = yield Step(name, {"destination": destination}, literals={"most": most})
    return [DueDelivery._make(row) for row in rows]


def settle_rows(dialect: Dialect, settlements: Sequence[Settlement]) -> Plan[int]:
    """Write what became of deliveries: those that were taken are deleted."""
    delivered, postponed, refused = Settlements.of(settlements)
    written = 0
    if delivered:
        ids = dialect.ids([one.id for one in delivered])
        written += yield Step("forget_delivered", {"ids": ids, "rows": settlement_rows(delivered)})
    for step, some in (("postpone_outbox", postponed), ("refuse_outbox", refused)):
        if some:
            written += yield Step(step, {"rows": settlement_rows(some)})
    return written


class OutboxBacklog(NamedTuple):
    """What waits for one destination."""

    destination: str
    waiting: int
    """At most `MOST_COUNTED`."""
    untried: int
    """Waiting rows that no relay has tried to deliver."""
    oldest_age_us: int


def backlog(dialect: Dialect) -> Plan[list[OutboxBacklog]]:
    """Return what waits, by destination."""
    del dialect
    found: list[OutboxBacklog] = []
    here = ""
    while len(found) < MOST_DESTINATIONS:
        row = yield Step("next_outbox_destination", {"destination": here})
        if row is None:
            break
        here = row[0]
        rows = yield Step("outbox_backlog", {"destination": here}, literals={"most": MOST_COUNTED})
        if rows:
            untried = sum(attempts == 0 for attempts, *_ in rows)
            oldest = max(now - created for _, created, _, now in rows)
            found.append(OutboxBacklog(here, len(rows), untried, oldest))
    return found


def purge(dialect: Dialect, older_than_us: int, limit: int, after: tuple[int, str]) -> Plan[Purged]:
    """Delete up to `limit` deliveries that were refused so long ago."""
    del after  # everything that is old enough goes
    old = yield Step("old_outbox", {"older_than_us": older_than_us}, literals={"window": limit})
    if old:
        yield Step("purge_outbox", {"ids": dialect.ids([row[0] for row in old])})
    return Purged(len(old), (old[-1][1], old[-1][0]) if len(old) == limit else None)
