"""Plans for subscriptions, and for what an operator sees of hand-offs: the backlog, lists, counts, retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from windlass.domain.publication import SubscriptionRow
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans.dead_letters import FIRST, Purged

MOST_COUNTED: Final = 10_000
"""Number of waiting hand-offs of a subscription at which a count stops."""
MINUTES_KEPT: Final = 24 * 60
FOLDED_AT_ONCE: Final = 1_000
_HOURS: Final = ((60, 0), (120, 60))

SubscriberKey = tuple[str, str]
"""A publication and a subscriber."""


def register(dialect: Dialect, declared: Sequence[tuple[SubscriptionRow, str]], pipelines: Sequence[str]) -> Plan[None]:
    """Store the subscriptions that a node declares; its pipelines have no others any more."""
    known = {(one.publication, one.subscriber) for one, _ in declared}
    if pipelines:
        for publication, subscriber in (yield Step("subscriptions_of_pipelines", {"names": dialect.names(pipelines)})):
            if (publication, subscriber) not in known:
                yield Step("drop_subscription", {"publication": publication, "subscriber": subscriber})
    rows = [
        (one.publication, one.subscriber, one.kind, config, one.max_in_flight)
        for one, config in sorted(declared, key=lambda pair: pair[0][:2])
    ]
    if rows:
        yield Step("save_subscriptions", {"rows": json_text(rows)})


class StoredBacklog(NamedTuple):
    """What waits for a subscription."""

    subscription: SubscriptionRow
    waiting: int
    oldest: int | None
    failing: int
    now: int


def all_subscriptions(dialect: Dialect) -> Plan[list[SubscriptionRow]]:
    """Return all subscriptions."""
    del dialect
    rows = yield Step("subscriptions", autocommit=True)
    return [SubscriptionRow(row[0], row[1], row[2], row[4], bool(row[3])) for row in rows]


def backlog(dialect: Dialect, declared: Sequence[SubscriptionRow] = ()) -> Plan[list[StoredBacklog]]:
    """Return what waits for each subscription, counted up to a limit; also where nothing subscribes any more.

    `declared` are those of this process, stored or not.
    """
    stored = {(one.publication, one.subscriber): one for one in declared}
    stored |= {(one.publication, one.subscriber): one for one in (yield from all_subscriptions(dialect))}
    last: SubscriberKey = ("", "")
    while True:
        row = yield Step("next_waiting_subscription", {"publication": last[0], "subscriber": last[1]}, autocommit=True)
        if row is None:
            break
        last = (row[0], row[1])
        stored.setdefault(last, SubscriptionRow(*last, ""))
    found = []
    for subscription in sorted(stored):
        params = {"publication": subscription[0], "subscriber": subscription[1]}
        row = yield Step("waiting_of_subscription", params, autocommit=True, literals={"window": MOST_COUNTED})
        found.append(StoredBacklog(stored[subscription], row[0], row[1], row[2] or 0, row[3]))
    return found


class StoredHandoffCounts(NamedTuple):
    """What was counted of the hand-offs of a subscription in an hour."""

    admitted: int
    suppressed: int
    rejected: int
    failed: int
    wait_us: int
    delayed: int
    drained: int


HourCounts = Mapping[SubscriberKey, StoredHandoffCounts]


def counts(dialect: Dialect) -> Plan[tuple[HourCounts, HourCounts]]:
    """Return the counts of the last hour and of the one before it."""
    del dialect
    found = []
    for since, until in _HOURS:
        rows = yield Step("counted_handoffs", {"since": since, "until": until}, autocommit=True)
        found.append({(row[0], row[1]): StoredHandoffCounts(*row[2:]) for row in rows})
    return found[0], found[1]


def pause(dialect: Dialect, publication: str, subscriber: str, *, paused: bool) -> Plan[bool]:
    """Pause or resume a subscription; return whether there is such a one."""
    del dialect
    params = {"publication": publication, "subscriber": subscriber, "paused": int(paused)}
    return bool((yield Step("pause_subscription", params)))


class StoredHandoff(NamedTuple):
    """A hand-off, without its payload."""

    id: str
    publication: str
    subscriber: str
    tenant: str
    key: str
    source_id: str | None
    item: str
    correlation_id: str
    status: str
    attempts: int
    due: int | None
    reason: str | None
    execution_id: str | None
    created_at: int
    settled_at: int | None


class Scope(Enum):
    """Which hand-offs a search reads."""

    ALL = "find_handoffs"
    FAILING = "find_failing_handoffs"
    """Hand-offs with a reason, including rejected ones."""
    REFUSED = "find_refused_handoffs"
    """Hand-offs that wait for another attempt."""
    GIVEN_UP = "find_given_up_handoffs"
    """Hand-offs that an external destination has permanently refused."""


def find(dialect: Dialect, before: str, window: int, scope: Scope) -> Plan[list[StoredHandoff]]:
    """Return the next hand-offs, latest first."""
    del dialect
    rows = yield Step(scope.value, {"before": before}, autocommit=True, literals={"window": window})
    return [StoredHandoff(*row) for row in rows]


def hurry(dialect: Dialect, ids: Sequence[str]) -> Plan[int]:
    """Make hand-offs that wait due now; return how many."""
    count: int = yield Step("hurry_handoffs", {"ids": dialect.ids(sorted(ids))})
    return count


def fold_counts(dialect: Dialect) -> Plan[bool]:
    """Add counts up by minute, and delete old ones; return whether there may be more to do."""
    del dialect
    taken = yield Step("take_handoff_counts", literals={"chunk": FOLDED_AT_ONCE})
    sums: dict[tuple[str, str, int], list[int]] = {}
    for publication, subscriber, minute, *numbers in taken:
        present = sums.setdefault((publication, subscriber, minute), [0] * len(numbers))
        sums[publication, subscriber, minute] = [a + b for a, b in zip(present, numbers, strict=True)]
    if sums:
        rows = [(*key, *sums[key]) for key in sorted(sums)]
        yield Step("insert_folded_counts", {"rows": json_text(rows)})
    gone = yield Step("drop_old_handoff_counts", {"keep": MINUTES_KEPT}, literals={"chunk": FOLDED_AT_ONCE})
    return len(taken) == FOLDED_AT_ONCE or gone == FOLDED_AT_ONCE


def purge(dialect: Dialect, older_than_us: int, limit: int, after: tuple[int, str] = FIRST) -> Plan[Purged]:
    """Delete hand-offs that were settled so long ago; what waits stays. `after`: the last one that was checked."""
    params = {"id": after[1], "older_than_us": older_than_us}
    rows = yield Step("old_handoffs", params, literals={"window": limit})
    old = [row[0] for row in rows if row[2]]
    if old:
        yield Step("purge_handoffs", {"ids": dialect.ids(old)})
    more = len(rows) == limit and bool(rows[-1][3])
    return Purged(len(old), (rows[-1][1], rows[-1][0]) if more else None)
