"""Hand-offs and backlogs as users see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from windlass.domain.clock import from_micros
from windlass.domain.publication import Handoff, HandoffCounts, HandoffStatus, PublicationBacklog
from windlass.stores.plans.subscriptions import (
    MOST_COUNTED,
    StoredBacklog,
    StoredHandoff,
    StoredHandoffCounts,
    SubscriberKey,
)

NOTHING = StoredHandoffCounts(0, 0, 0, 0, 0, 0, 0)


def handoff_value(row: StoredHandoff) -> Handoff:
    """Return a hand-off."""
    return Handoff(
        id=UUID(row.id),
        publication=row.publication,
        subscriber=row.subscriber,
        tenant=row.tenant,
        key=row.key,
        source_id=None if row.source_id is None else UUID(row.source_id),
        item=row.item,
        correlation_id=row.correlation_id,
        status=HandoffStatus(row.status),
        attempts=row.attempts,
        due_at=None if row.due is None else from_micros(row.due),
        reason=row.reason,
        execution_id=None if row.execution_id is None else UUID(row.execution_id),
        created_at=from_micros(row.created_at),
        settled_at=None if row.settled_at is None else from_micros(row.settled_at),
    )


def backlogs(
    waiting: Sequence[StoredBacklog],
    last: Mapping[SubscriberKey, StoredHandoffCounts],
    before: Mapping[SubscriberKey, StoredHandoffCounts],
) -> list[PublicationBacklog]:
    """Return the backlog of each subscription, with what was counted in the last two hours."""
    return [
        PublicationBacklog(
            publication=one.subscription.publication,
            subscriber=one.subscription.subscriber,
            kind=one.subscription.kind,
            paused=one.subscription.paused,
            max_in_flight=one.subscription.max_in_flight,
            waiting=one.waiting,
            bounded=one.waiting >= MOST_COUNTED,
            hour_ago=max(0, one.waiting - last.get(key, NOTHING).delayed + last.get(key, NOTHING).drained),
            failing=one.failing,
            lag=0.0 if one.oldest is None else max(0, one.now - one.oldest) / 1_000_000,
            last_hour=_counts(last.get(key, NOTHING)),
            hour_before=_counts(before.get(key, NOTHING)),
        )
        for one in waiting
        for key in (one.subscription[:2],)
    ]


def _counts(stored: StoredHandoffCounts) -> HandoffCounts:
    return HandoffCounts(
        admitted=stored.admitted,
        suppressed=stored.suppressed,
        rejected=stored.rejected,
        failed=stored.failed,
        latency_ms=stored.wait_us / stored.admitted / 1_000 if stored.admitted else None,
    )
