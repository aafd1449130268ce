"""Plans for the backlog of publications: what is due, and its admission."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from windlass.domain.publication import FailedHandoff, SubscriptionRow, retry_delay_us
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import execution_submissions as submissions
from windlass.stores.plans.execution_submissions import NewSubmission, SubmittedExecution
from windlass.stores.plans.handoffs import (
    NOTHING_PUBLISHED,
    AdmittedItem,
    HandoffCount,
    Published,
    count,
    free,
    other_input,
)


class WaitingHandoff(NamedTuple):
    """A hand-off that is due."""

    id: str
    tenant: str
    key: str
    correlation_id: str
    payload: str
    payload_hash: str
    attempts: int


def due(dialect: Dialect, publication: str, subscriber: str, most: int) -> Plan[list[WaitingHandoff]]:
    """Return the hand-offs of a subscription that are due, in their order."""
    del dialect
    where = {"publication": publication, "subscriber": subscriber}
    rows = yield Step("due_handoffs", where, autocommit=True, literals={"window": most})
    return [WaitingHandoff(*row) for row in rows]


class BacklogLook(NamedTuple):
    """Whether a subscription has something to do."""

    ready: bool
    """Whether a hand-off is due and the subscriber admits it."""
    due_us: int | None
    """Microseconds until the first one that waits is due; None: none waits."""
    room: int | None = None
    """How many more it admits now; None: any number."""


def look(dialect: Dialect, subscriptions: Sequence[tuple[str, str]]) -> Plan[dict[tuple[str, str], BacklogLook]]:
    """Return what waits for pipelines of this process; costs the same however much that is."""
    names = sorted({publication for publication, _ in subscriptions})
    rows = yield Step("subscriptions_to", {"names": dialect.names(names)}, autocommit=True)
    stored = {(row[0], row[1]): (bool(row[3]), row[4]) for row in rows}
    found = {}
    for subscription in subscriptions:
        where = {"publication": subscription[0], "subscriber": subscription[1]}
        first = yield Step("first_waiting", where, autocommit=True)
        if first is None:
            found[subscription] = BacklogLook(ready=False, due_us=None)
            continue
        paused, limit = stored.get(subscription, (False, None))
        wait = max(0, first[0] - first[1])
        ready, room = wait == 0 and not paused, None
        if ready and limit is not None:
            counted = yield Step(
                "open_of_pipeline", {"pipeline": subscription[1]}, autocommit=True, literals={"most": limit}
            )
            room = max(0, limit - int(counted[0]))
        found[subscription] = BacklogLook(ready and room != 0, wait, room)
    return found


def admit_waiting(
    dialect: Dialect,
    subscription: SubscriptionRow,
    waiting: Sequence[tuple[WaitingHandoff, AdmittedItem]],
    known_queues: Collection[str] = (),
) -> Plan[Published]:
    """Admit hand-offs of the backlog as far as there is room; those that are refused wait for their next try."""
    publication, subscriber = subscription.publication, subscription.subscriber
    row = yield Step("lock_subscription", {"publication": publication, "subscriber": subscriber})
    paused, limit = (False, subscription.max_in_flight) if row is None else (bool(row[1]), row[2])
    if paused:
        return NOTHING_PUBLISHED
    ready = [(one, item.submission) for one, item in waiting if item.submission is not None]
    room = len(ready) if limit is None else (yield from free(subscriber, limit))
    chosen = ready[:room]
    answers = yield from submissions.known(dialect, [submission.execution for _, submission in chosen])
    refused = {one.id: (one, item.refusal) for one, item in waiting if item.refusal is not None}
    admitted = []
    for (one, submission), answer in zip(chosen, answers, strict=True):
        if answer.conflict:
            refused[one.id] = (one, other_input(answer.id))
        else:
            admitted.append((one.id, answer, submission))
    settled = (yield from _settle(admitted)) if admitted else {}
    fresh = submissions.fresh_of({id_: (answer, submission) for id_, answer, submission in admitted}, settled)
    work = yield from submissions.store_fresh(dialect, fresh, known_queues)
    if refused:
        rows = [(one.id, retry_delay_us(one.attempts + 1), reason) for one, reason in refused.values()]
        yield Step("refuse_handoffs", {"rows": json_text(rows)})
    failures = tuple(
        FailedHandoff(publication, subscriber, one.tenant, one.key, reason or "", final=False)
        for one, reason in refused.values()
    )
    number = len(settled)
    counted = HandoffCount(number, number - len(fresh), 0, len(refused), sum(settled.values()), drained=number)
    yield from count(subscription, counted)
    reached("publish.backlog_before_commit")
    return Published(work, failures, tuple(answer.id for id_, answer, _ in admitted if id_ in settled))


def _settle(admitted: Sequence[tuple[str, SubmittedExecution, NewSubmission]]) -> Plan[dict[str, int]]:
    """Mark hand-offs as admitted; return how long each has waited."""
    pairs = [(id_, answer.id) for id_, answer, _ in admitted]
    return dict((yield Step("admit_handoffs", {"rows": json_text(pairs)})))
