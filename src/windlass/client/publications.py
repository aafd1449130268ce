"""`app.publications`: the backlog of hand-offs, what an operator does about it, and what comes from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypedDict, Unpack
from uuid import UUID

from windlass.client.execution_verbs import OneExecutionVerbs
from windlass.client.filters import Page, check_filter_names, checked_limit
from windlass.client.handoff_views import backlogs, handoff_value
from windlass.domain.identity import LAST_ID, new_job_id, parse_job_id
from windlass.domain.keys import check_key
from windlass.domain.publication import Handoff, HandoffStatus, PublicationBacklog, ReceivedItem
from windlass.domain.suggestions import did_you_mean
from windlass.errors import InvalidOptionError
from windlass.execution_errors import HandoffConflictError, PublicationNotFoundError
from windlass.pipelines.declared_pipelines import DeclaredPipelines
from windlass.pipelines.execution_submitter import DEFAULT_TENANT
from windlass.pipelines.item_values import fingerprint
from windlass.pipelines.subscribers import log_failures, payload_of
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.plans import handoffs, remote_handoffs, subscriptions
from windlass.stores.plans.handoffs import OTHER_PAYLOAD, PublishedItem, PublishedItems
from windlass.stores.plans.subscriptions import Scope, StoredHandoff

MOST_READ: Final = 20_000
"""Number of hand-offs that one page reads at most."""
WINDOW: Final = 1_000


class HandoffFiltersDict(TypedDict, total=False):
    """The filters of `publications.list` and `retry` as keywords; None matches anything."""

    publication: str | None
    subscriber: str | None
    tenant: str | None
    status: HandoffStatus | str | None
    failing: bool


class AppPublications:
    """`app.publications`: items that executions pass on to subscribers.

    A hand-off that fails is neither a dead letter nor a reject: it waits here, with its reason and its next try.
    """

    def __init__(self, verbs: OneExecutionVerbs, declared: DeclaredPipelines) -> None:
        self._verbs = verbs
        self._declared = declared

    # ------------------------------------------------------------------ looking

    def backlog(self) -> list[PublicationBacklog]:
        """Return every subscription with what waits for it, and what was counted in the last two hours.

        Waiting hand-offs are counted up to 10,000 for each subscription.
        """
        return drive(self._backlog())

    async def abacklog(self) -> list[PublicationBacklog]:
        """Async twin of `backlog`."""
        return await adrive(self._backlog())

    def _backlog(self) -> Verb[list[PublicationBacklog]]:
        jobs = self._verbs.jobs
        yield from jobs.authorization.check("publications")
        waiting = yield from jobs.access.read(subscriptions.backlog, self._declared.subscriptions())
        counts = yield from jobs.access.read(subscriptions.counts)
        return backlogs(waiting, *counts)

    def list(
        self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[HandoffFiltersDict]
    ) -> Page[Handoff]:
        """Return hand-offs that match every filter given, latest first.

        Filters: `publication, subscriber, tenant, status`, and `failing=True` for those that were refused at their last
        try, or rejected. A page reads a bounded number of rows: where few of many match, it may hold fewer than
        `limit`, even none, and still have a `next_cursor`.
        """
        return drive(self._list(cursor, limit, filters))

    async def alist(
        self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[HandoffFiltersDict]
    ) -> Page[Handoff]:
        """Async twin of `list`."""
        return await adrive(self._list(cursor, limit, filters))

    def _list(self, cursor: str | None, limit: int, filters: HandoffFiltersDict) -> Verb[Page[Handoff]]:
        yield from self._verbs.jobs.authorization.check("publications")
        fits = _checked(filters, "list")
        scope = Scope.FAILING if filters.get("failing") else Scope.ALL
        before = LAST_ID if cursor is None else parse_job_id(cursor)
        rows, following = yield from self._matching(fits, before, checked_limit(limit), scope)
        return Page([handoff_value(row) for row in rows], following)

    def _matching(
        self, fits: Callable[[StoredHandoff], bool], before: str, limit: int, scope: Scope
    ) -> Verb[tuple[Iterable[StoredHandoff], str | None]]:
        found: list_of[StoredHandoff] = []
        read = 0
        while read < MOST_READ:
            page = yield from self._verbs.jobs.access.read(subscriptions.find, before, WINDOW, scope)
            read += len(page)
            for row in page:
                before = row.id
                if fits(row):
                    found.append(row)
                    if len(found) == limit:
                        return found, before
            if len(page) < WINDOW:
                return found, None
        return found, before

    # ------------------------------------------------------------------ steering

    def pause(self, publication: str, subscriber: str) -> bool:
        """Keep hand-offs to a subscriber in the backlog; return whether there is such a subscription."""
        return drive(self._pause(publication, subscriber, paused=True))

    async def apause(self, publication: str, subscriber: str) -> bool:
        """Async twin of `pause`."""
        return await adrive(self._pause(publication, subscriber, paused=True))

    def resume(self, publication: str, subscriber: str) -> bool:
        """Admit hand-offs again, those that wait first; return whether there is such a subscription."""
        return drive(self._pause(publication, subscriber, paused=False))

    async def aresume(self, publication: str, subscriber: str) -> bool:
        """Async twin of `resume`."""
        return await adrive(self._pause(publication, subscriber, paused=False))

    def _pause(self, publication: str, subscriber: str, *, paused: bool) -> Verb[bool]:
        jobs = self._verbs.jobs
        yield from jobs.authorization.check("pause" if paused else "resume")
        subscription = (check_key(publication, "publication"), check_key(subscriber, "subscriber"))
        found: bool = yield from jobs.access.run(subscriptions.pause, *subscription, paused=paused)
        self._declared.subscribers.bell.ring()
        self._declared.bells.ring_all()
        return found

    def retry(self, *, limit: int = 1_000, **filters: Unpack[HandoffFiltersDict]) -> int:
        """Try hand-offs that were refused again now, up to `limit` (1 to 1,000) of those that match; return how many.

        Those that are WAITING, or with `status="REJECTED"` those that a destination outside has refused for good,
        unless another one has been handed over under the key since. Others that are rejected are never tried again:
        their key was used with another payload, or they have none.
        """
        return drive(self._retry(limit, filters))

    async def aretry(self, *, limit: int = 1_000, **filters: Unpack[HandoffFiltersDict]) -> int:
        """Async twin of `retry`."""
        return await adrive(self._retry(limit, filters))

    def _retry(self, limit: int, filters: HandoffFiltersDict) -> Verb[int]:
        jobs = self._verbs.jobs
        yield from jobs.authorization.check("retry")
        wanted = _retried_status(filters.get("status"))
        fits = _checked({**filters, "status": wanted}, "retry")
        given_up = wanted is HandoffStatus.REJECTED
        scope, plan = (Scope.GIVEN_UP, remote_handoffs.revive) if given_up else (Scope.REFUSED, subscriptions.hurry)
        rows, _ = yield from self._matching(fits, LAST_ID, checked_limit(limit), scope)
        if given_up:  # one key may have been refused more than once
            rows = {(row.publication, row.subscriber, row.tenant, row.key): row for row in reversed([*rows])}.values()
        ids = [row.id for row in rows]
        count: int = (yield from jobs.access.run(plan, ids)) if ids else 0
        self._declared.subscribers.bell.ring()
        self._declared.bells.ring_all()
        return count

    # ------------------------------------------------------------------ from outside

    def admit(
        self,
        name: str,
        payload: Any,
        *,
        key: str,
        tenant: str = DEFAULT_TENANT,
        correlation_id: str | None = None,
    ) -> ReceivedItem:
        """Hand an item that comes from outside over to the pipelines that subscribe to a publication.

        ```python
        @web.post("/publications/invoices")
        def receive(request: Request) -> Response:
            app.publications.admit("invoices", request.json(), key=request.headers["Idempotency-Key"])
            return Response(status=202)
        ```
        The payload is plain JSON data. The same key again is a duplicate, and with another payload a
        `HandoffConflictError`: answer 409, so that the sender gives up. A subscriber that is paused or full, or
        refuses it, has it in its backlog, and the sender is done all the same.
        """
        return drive(self._admit(name, payload, key, tenant, correlation_id))

    async def aadmit(
        self,
        name: str,
        payload: Any,
        *,
        key: str,
        tenant: str = DEFAULT_TENANT,
        correlation_id: str | None = None,
    ) -> ReceivedItem:
        """Async twin of `admit`."""
        return await adrive(self._admit(name, payload, key, tenant, correlation_id))

    def _admit(self, name: str, payload: Any, key: str, tenant: str, correlation_id: str | None) -> Verb[ReceivedItem]:
        jobs = self._verbs.jobs
        yield from jobs.authorization.check("submit")
        outgoing = self._outgoing(name, payload, (key, tenant, correlation_id))
        if not outgoing.known:
            stored = yield from jobs.access.read(subscriptions.all_subscriptions)
            if not any(one.publication == name for one in stored):
                raise PublicationNotFoundError(name, sorted({*self._declared.subscribers.names}))
        queues = jobs.access.database.known_queues
        published: handoffs.Published = yield from jobs.access.run(handoffs.publish, [outgoing], queues)
        log_failures(published.failures)
        if published.work:
            jobs.publisher.wakeups.new_work(published.work)
        executions = tuple(UUID(one) for one in published.admitted)
        if any(one.reason == OTHER_PAYLOAD for one in published.failures):
            raise HandoffConflictError(name, key)
        handed = len(published.admitted) + published.waiting + len(published.failures)
        return ReceivedItem(
            duplicate=published.suppressed > 0 and published.suppressed >= handed,
            executions=executions,
            waiting=published.waiting,
        )

    def _outgoing(self, name: str, payload: Any, given: tuple[str, str, str | None]) -> PublishedItems:
        key, tenant = check_key(given[0], "key"), check_key(given[1], "tenant")
        serializer, limit = self._declared.serializer, self._declared.settings.max_value_bytes
        text = payload_of(serializer, payload, limit)
        correlation_id = new_job_id() if given[2] is None else check_key(given[2], "correlation_id")
        subscribers = self._declared.subscribers.of(check_key(name, "the name of a publication"))
        admissions = {one.name: one.admitted(text, key, tenant, correlation_id, new_job_id()) for one in subscribers}
        item = PublishedItem(key, "0", text, fingerprint(payload), admissions)
        return PublishedItems(name, tenant, None, correlation_id, [item], [one.subscription for one in subscribers])


list_of = list
"""The class, whose name the verb of the same name hides."""


def _retried_status(given: HandoffStatus | str | None) -> HandoffStatus:
    """Return which hand-offs are tried again; raise for those that were admitted."""
    text = HandoffStatus.WAITING.value if given is None else str(given).upper()
    if text not in (HandoffStatus.WAITING.value, HandoffStatus.REJECTED.value):
        raise InvalidOptionError(f"status must be WAITING or REJECTED, which may be tried again, got {given!r}")
    return HandoffStatus(text)


def _checked(filters: HandoffFiltersDict, verb: str) -> Callable[[StoredHandoff], bool]:
    """Return whether a hand-off matches, as a function; raise for a filter that is not known."""
    check_filter_names(filters, HandoffFiltersDict.__optional_keys__, f"publications.{verb}")
    wanted = {name: filters.get(name) for name in ("publication", "subscriber", "tenant", "status")}
    status = wanted["status"]
    if status is not None:
        known = [one.value for one in HandoffStatus]
        text = str(status).upper()
        if text not in known:
            raise InvalidOptionError(
                f"status must be one of {', '.join(known)}, got {status!r}{did_you_mean(text, known)}"
            )
        wanted["status"] = text
    return lambda row: all(value is None or getattr(row, name) == value for name, value in wanted.items())
