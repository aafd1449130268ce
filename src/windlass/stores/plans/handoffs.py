"""Plans that hand items over to subscribers: in the transaction that publishes them, or later from the backlog."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from windlass.domain.identity import new_job_ids
from windlass.domain.publication import PIPELINE, REMOTE, FailedHandoff, HandoffStatus, SubscriptionRow, retry_delay_us
from windlass.runtime.failpoints import reached
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.plans import execution_submissions as submissions
from windlass.stores.plans.execution_submissions import NewSubmission, SubmittedExecution

OTHER_PAYLOAD: Final = "its key was handed over before with another payload"


class AdmittedItem(NamedTuple):
    """An item as one subscriber of this process would run it."""

    handoff_id: str
    submission: NewSubmission | None
    refusal: str | None = None
    """Why it cannot be submitted."""


class PublishedItem(NamedTuple):
    """One item of a publication."""

    key: str
    item: str
    payload: str
    payload_hash: str
    admissions: Mapping[str, AdmittedItem]
    """Admissions by subscriber, for those of this process."""
    refusal: str | None = None
    """Why no subscriber can get it: it has no key."""


class PublishedItems(NamedTuple):
    """Items of one execution for one publication."""

    publication: str
    tenant: str
    source_id: str | None
    correlation_id: str
    items: Sequence[PublishedItem]
    known: Sequence[SubscriptionRow]
    """The subscriptions that this process has declared, stored or not; of remote ones no others count."""


class Published(NamedTuple):
    """What a transaction has handed over."""

    work: frozenset[tuple[str, int]] = frozenset()
    failures: tuple[FailedHandoff, ...] = ()
    admitted: tuple[str, ...] = ()
    """Executions."""
    waiting: int = 0
    suppressed: int = 0
    rejected: int = 0
    remote: frozenset[tuple[str, str]] = frozenset()
    """Publications and subscribers outside of the database that have new hand-offs."""

    def __or__(self, other: Published) -> Published:
        """Return the sum of both."""
        return Published(
            self.work | other.work,
            self.failures + other.failures,
            self.admitted + other.admitted,
            self.waiting + other.waiting,
            self.suppressed + other.suppressed,
            self.rejected + other.rejected,
            self.remote | other.remote,
        )


NOTHING_PUBLISHED: Final = Published()


class _NewHandoff(NamedTuple):
    """An item for one subscriber."""

    of: PublishedItems
    item: PublishedItem
    id: str
    admitted: AdmittedItem | None

    @property
    def name(self) -> tuple[str, str]:
        return self.of.tenant, self.item.key

    def row(
        self,
        subscriber: str,
        status: HandoffStatus,
        reason: str | None = None,
        *,
        attempts: int = 0,
        execution: str | None = None,
    ) -> tuple[object, ...]:
        one, of = self.item, self.of
        seen = None if status is HandoffStatus.REJECTED else one.key
        payload = one.payload if status is HandoffStatus.WAITING else None
        delay = retry_delay_us(attempts) if attempts else 0
        return (
            *(self.id, of.publication, subscriber, of.tenant, one.key, seen, of.source_id, one.item, of.correlation_id),
            *(payload, one.payload_hash, status.value, attempts, delay, reason, execution),
        )

    def failure(self, subscriber: str, reason: str, *, final: bool) -> FailedHandoff:
        return FailedHandoff(self.of.publication, subscriber, self.of.tenant, self.item.key, reason, final)


def publish(
    dialect: Dialect, outgoing: Sequence[PublishedItems], known_queues: Collection[str] = ()
) -> Plan[Published]:
    """Hand items over to all subscribers: admitted in this transaction where that is possible, else to the backlog."""
    names = sorted({one.publication for one in outgoing})
    rows = yield Step("subscriptions_to", {"names": dialect.names(names)})
    stored = [SubscriptionRow(row[0], row[1], row[2], row[4], bool(row[3])) for row in rows]
    published = NOTHING_PUBLISHED
    for name in names:
        some = [one for one in outgoing if one.publication == name]
        for subscription in _subscriptions(name, stored, some):
            published |= yield from _hand_over(dialect, subscription, _new_handoffs(subscription, some), known_queues)
            reached("publish.first_target_written")
    return published


def _subscriptions(
    name: str, stored: Sequence[SubscriptionRow], some: Sequence[PublishedItems]
) -> list[SubscriptionRow]:
    """Return the subscribers of a publication: those declared here, and pipelines that other processes have stored."""
    found = {one.subscriber: one for batch in some for one in batch.known}
    for one in stored:
        if one.publication == name and (one.kind == PIPELINE or one.subscriber in found):
            found[one.subscriber] = one
    return [found[subscriber] for subscriber in sorted(found)]


def _new_handoffs(subscription: SubscriptionRow, some: Sequence[PublishedItems]) -> list[_NewHandoff]:
    """Return the items of a subscriber in the order of their keys, so that concurrent writers cannot deadlock."""
    subscriber, local = subscription.subscriber, subscription.kind == PIPELINE
    given = [
        (batch, item)
        for batch in some
        if local or any(one.subscriber == subscriber for one in batch.known)
        for item in batch.items
    ]
    ids = new_job_ids(len(given))
    handoffs = [
        _NewHandoff(of, item, admitted.handoff_id if admitted else spare, admitted)
        for (of, item), spare in zip(given, ids, strict=True)
        for admitted in (item.admissions.get(subscriber),)
    ]
    return sorted(handoffs, key=lambda handoff: (*handoff.name, handoff.item.item))


def _hand_over(
    dialect: Dialect, subscription: SubscriptionRow, handoffs: Sequence[_NewHandoff], known_queues: Collection[str]
) -> Plan[Published]:
    subscriber = subscription.subscriber
    ready = [one for one in handoffs if one.admitted and one.admitted.submission and not one.item.refusal]
    room = (yield from _room(subscription, len(ready))) if ready else 0
    chosen = {one.id: made for one in ready[:room] if one.admitted and (made := one.admitted.submission)}
    known = yield from submissions.known(dialect, [one.execution for one in chosen.values()])
    answers = dict(zip(chosen, known, strict=True))
    rows, failures = [], {}
    for handoff in handoffs:
        row, failure = _decided(handoff, subscriber, answers.get(handoff.id))
        rows.append(row)
        if failure is not None:
            failures[handoff.id] = failure
    stored = {row[0] for row in (yield Step("insert_handoffs", dialect.bulk("handoff_rows", rows)))}
    missing = [handoff for handoff in handoffs if handoff.id not in stored]
    repeated = (yield from _repeated(dialect, subscription, missing)) if missing else NOTHING_PUBLISHED
    fresh = submissions.fresh_of({key: (answers[key], made) for key, made in chosen.items()}, stored)
    work = yield from submissions.store_fresh(dialect, fresh, known_queues)
    admitted = [key for key in answers if key in stored and not answers[key].conflict]
    failed = tuple(failure for key, failure in failures.items() if key in stored)
    rejected = sum(failure.final for failure in failed)
    handed = Published(
        work,
        failed,
        tuple(answers[key].id for key in admitted),
        len(stored) - len(admitted) - rejected,
        len(admitted) - len(fresh),
        rejected,
        frozenset({subscription[:2]} if subscription.kind == REMOTE and stored else ()),
    )
    total = handed | repeated
    refused = len(failed) - rejected
    counted = HandoffCount(len(admitted), total.suppressed, total.rejected, refused, delayed=handed.waiting)
    yield from count(subscription, counted)
    return total


def _decided(
    handoff: _NewHandoff, subscriber: str, answer: SubmittedExecution | None
) -> tuple[tuple[object, ...], FailedHandoff | None]:
    """Return the row of a hand-off that was not seen before, and how it has failed, if so."""
    if handoff.item.refusal is not None:
        failure = handoff.failure(subscriber, handoff.item.refusal, final=True)
        return handoff.row(subscriber, HandoffStatus.REJECTED, handoff.item.refusal), failure
    refusal = None if handoff.admitted is None else handoff.admitted.refusal
    if answer is not None and answer.conflict:
        refusal = other_input(answer.id)
    if refusal is not None:
        failure = handoff.failure(subscriber, refusal, final=False)
        return handoff.row(subscriber, HandoffStatus.WAITING, refusal, attempts=1), failure
    if answer is None:
        return handoff.row(subscriber, HandoffStatus.WAITING), None
    return handoff.row(subscriber, HandoffStatus.ADMITTED, execution=answer.id), None


def other_input(execution: str) -> str:
    """Return why a hand-off is refused whose key an execution has that was not published."""
    return f"execution {execution} has its key and another input"


def _room(subscription: SubscriptionRow, wanted: int) -> Plan[int]:
    """Return how many a subscriber admits now. One with a limit is locked: no other plan may count the same room."""
    where = {"publication": subscription.publication, "subscriber": subscription.subscriber}
    paused, limit = subscription.paused, subscription.max_in_flight
    if limit is not None and not paused:
        row = yield Step("lock_subscription", where)
        if row is not None:
            paused, limit = bool(row[1]), row[2]
    if paused or limit is None:
        return 0 if paused else wanted
    first = yield Step("first_waiting", where)
    if first is not None and first[0] <= first[1]:
        return 0  # others have waited longer
    return (yield from free(subscription.subscriber, limit))


def free(pipeline: str, limit: int) -> Plan[int]:
    """Return how many more executions of a pipeline may be open."""
    counted = yield Step("open_of_pipeline", {"pipeline": pipeline}, literals={"most": limit})
    return max(0, limit - int(counted[0]))


def _repeated(dialect: Dialect, subscription: SubscriptionRow, missing: Sequence[_NewHandoff]) -> Plan[Published]:
    """Drop hand-offs whose key was seen with the same payload, and reject those that have another."""
    subscriber = subscription.subscriber
    wanted = sorted({handoff.name for handoff in missing})
    params = {"publication": subscription.publication, "subscriber": subscriber, "rows": json_text(wanted)}
    found = {(row[0], row[1]): (row[2], row[3]) for row in (yield Step("holders_of_handoffs", params))}
    if len(found) < len(wanted):
        raise RestartPlanError  # one was purged since: its key is free again
    same = [handoff for handoff in missing if found[handoff.name][0] == handoff.item.payload_hash]
    others = [handoff for handoff in missing if found[handoff.name][0] != handoff.item.payload_hash]
    if others:
        rows = [handoff.row(subscriber, HandoffStatus.REJECTED, OTHER_PAYLOAD) for handoff in others]
        yield Step("insert_handoffs", dialect.bulk("handoff_rows", rows))
    return Published(
        failures=tuple(handoff.failure(subscriber, OTHER_PAYLOAD, final=True) for handoff in others),
        admitted=tuple(found[handoff.name][1] for handoff in same if found[handoff.name][1] is not None),
        suppressed=len(same),
        rejected=len(others),
    )


class HandoffCount(NamedTuple):
    """What a transaction counts for a subscription."""

    admitted: int = 0
    suppressed: int = 0
    rejected: int = 0
    failed: int = 0
    """Tries."""
    wait_us: int = 0
    """Total wait of the admitted ones, from their publication on."""
    delayed: int = 0
    """Left in the backlog at first."""
    drained: int = 0
    """Admitted from the backlog, or given up there."""


def count(subscription: SubscriptionRow, counted: HandoffCount) -> Plan[None]:
    """Add to the counts of a subscription."""
    if any(counted):
        row = (subscription.publication, subscription.subscriber, *counted)
        yield Step("insert_handoff_counts", {"rows": json_text([row])})
