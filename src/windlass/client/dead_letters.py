"""`app.dead_letters` and `app.alerts`: looking at jobs that failed for good, starting them over, forgetting them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Any, Final, Unpack
from uuid import UUID

from windlass.client.access import Access
from windlass.client.aftermath import Aftermath
from windlass.client.authorization import Authorization
from windlass.client.dead_letter_views import (
    AlertFilterWords,
    DeadLetterFilters,
    alert_of,
    checked_alert_filters,
    checked_kind,
    checked_letter_filters,
    cursor_of,
    group_of,
    letter_of,
    spot_of,
)
from windlass.client.filters import NamesOf, Page, checked_limit, with_names
from windlass.client.redrives import Order, Redriving, process_owner
from windlass.domain.dead_letter import Alert, DeadLetter, DeadLetterGroup, Redrive
from windlass.domain.durations import seconds
from windlass.domain.identity import new_job_id, parse_job_id
from windlass.errors import JobNotFoundError, JobStateError
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import alerts, dead_letters, reads, triage
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.submission.registry import Registry

PURGE_BATCH: Final = 500
MICROSECONDS: Final = 1_000_000

Told = Callable[[Redrive], object]


class DeadLetters:
    """`app.dead_letters`: jobs that failed for good, each with the envelope that was stored as it died.

    Filters, everywhere: `fingerprint, target, error_class, reason, queue, tag, created_after, created_before` (when it
    died). A job that is PAUSED is no dead letter meanwhile.
    """

    def __init__(self, access: Access, aftermath: Aftermath, authorization: Authorization, names_of: NamesOf) -> None:
        self._access = access
        self._aftermath = aftermath
        self._authorization = authorization
        self._names_of = names_of

    def _asked(self, filters: DeadLetterFilters, verb: str) -> triage.LetterFilters:
        return with_names(checked_letter_filters(filters, verb), self._names_of)

    def _who(self) -> str:
        """For the audit log: whom the application acts for, else whoever runs this process."""
        return self._authorization.name() or process_owner()

    # ------------------------------------------------------------------ looking

    def find(
        self, kind: str = "job", *, cursor: str | None = None, limit: int = 100, **filters: Unpack[DeadLetterFilters]
    ) -> Page[DeadLetter]:
        """Dead letters that fit every filter given, the latest first.

        A page reads a bounded number of rows: where few of many fit, it may hold fewer than `limit`, even none, and
        still have a `next_cursor`. There are none of kind `"execution"` yet.
        """
        self._authorization.check("dead_letters")
        asked = (self._asked(filters, "find"), spot_of(cursor), checked_limit(limit))
        if checked_kind(kind) != "job":
            return Page([])
        page = _page(*self._access.read(triage.page, *asked))
        return _of(page, self._authorization.allowed("get", [letter.job_id for letter in page]))

    async def afind(
        self, kind: str = "job", *, cursor: str | None = None, limit: int = 100, **filters: Unpack[DeadLetterFilters]
    ) -> Page[DeadLetter]:
        """Async twin of `find`."""
        await self._authorization.acheck("dead_letters")
        asked = (self._asked(filters, "find"), spot_of(cursor), checked_limit(limit))
        if checked_kind(kind) != "job":
            return Page([])
        page = _page(*await self._access.aread(triage.page, *asked))
        return _of(page, await self._authorization.aallowed("get", [letter.job_id for letter in page]))

    def get(self, job_id: UUID | str) -> DeadLetter:
        """The dead letter of a job; `JobNotFoundError` if there is no such job, `JobStateError` if it is none."""
        key = parse_job_id(job_id)
        self._authorization.check("get", key)
        return _letter(key, *self._access.read(_get, key))

    async def aget(self, job_id: UUID | str) -> DeadLetter:
        """Async twin of `get`."""
        key = parse_job_id(job_id)
        await self._authorization.acheck("get", key)
        return _letter(key, *await self._access.aread(_get, key))

    def groups(
        self, kind: str = "job", *, limit: int = 100, **filters: Unpack[DeadLetterFilters]
    ) -> list[DeadLetterGroup]:
        """Dead letters by fingerprint (target, error class and shape of message), the largest group first.

        With filters other than `fingerprint`, `target` and `error_class` the latest 20,000 that fit are counted.
        """
        self._authorization.check("dead_letters")
        asked = (self._asked(filters, "groups"), checked_limit(limit))
        if checked_kind(kind) != "job":
            return []
        return [group_of(group) for group in self._access.read(triage.groups, *asked)]

    async def agroups(
        self, kind: str = "job", *, limit: int = 100, **filters: Unpack[DeadLetterFilters]
    ) -> list[DeadLetterGroup]:
        """Async twin of `groups`."""
        await self._authorization.acheck("dead_letters")
        asked = (self._asked(filters, "groups"), checked_limit(limit))
        if checked_kind(kind) != "job":
            return []
        return [group_of(group) for group in await self._access.aread(triage.groups, *asked)]

    # ------------------------------------------------------------------ starting over

    def redrive(
        self,
        limit: int = 100,
        rate: float | None = None,
        dry_run: bool = False,
        stop_at: float | None = None,
        note: str = "",
        *,
        told: Told | None = None,
        **filters: Unpack[DeadLetterFilters],
    ) -> Redrive:
        """Start dead letters that fit over, those that died first first, up to `limit` (1 to 100,000) of them.

        It goes in batches of at most 100, each a transaction of its own with its entry in the audit log, at no more
        than `rate` jobs per second. It stops when more than the share `stop_at` (0 to 1; None is a half, 1 is never) of
        at least 20 jobs that have ended since have failed again. A job whose business key another one holds is skipped.
        A `dry_run` selects, and touches nothing. `note` is kept in the audit log. `told` is called with the sum so far
        after every batch.
        """
        self._authorization.check("redrive")
        asked = self._asked(filters, "redrive")
        order = _order(asked, limit, rate, dry_run, stop_at, note, filters, self._who())
        return Redriving(order, self._aftermath, told).run(self._access)

    async def aredrive(
        self,
        limit: int = 100,
        rate: float | None = None,
        dry_run: bool = False,
        stop_at: float | None = None,
        note: str = "",
        *,
        told: Told | None = None,
        **filters: Unpack[DeadLetterFilters],
    ) -> Redrive:
        """Async twin of `redrive`."""
        await self._authorization.acheck("redrive")
        asked = self._asked(filters, "redrive")
        order = _order(asked, limit, rate, dry_run, stop_at, note, filters, self._who())
        return await Redriving(order, self._aftermath, told).arun(self._access)

    # ------------------------------------------------------------------ forgetting

    def purge(self, older_than: float | timedelta) -> int:
        """Forget jobs that died longer ago than so many seconds, with all that is kept of them; answers how many.

        In batches, live or archived, and alerts of that age too. Only their idempotency keys stay.
        """
        self._authorization.check("purge")
        age_us, entry = _purging(older_than, self._who())
        while gone := self._access.run(dead_letters.purge, age_us, PURGE_BATCH, entry):
            entry = entry._replace(affected=entry.affected + gone)
        return entry.affected

    async def apurge(self, older_than: float | timedelta) -> int:
        """Async twin of `purge`."""
        await self._authorization.acheck("purge")
        age_us, entry = _purging(older_than, self._who())
        while gone := await self._access.arun(dead_letters.purge, age_us, PURGE_BATCH, entry):
            entry = entry._replace(affected=entry.affected + gone)
        return entry.affected


class Alerts:
    """`app.alerts`: that jobs have begun to die of one kind of error. They stay until dead letters are purged."""

    def __init__(self, access: Access, authorization: Authorization, names_of: NamesOf) -> None:
        self._access = access
        self._authorization = authorization
        self._names_of = names_of

    def find(self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[AlertFilterWords]) -> Page[Alert]:
        """Alerts that fit every filter given, the latest raised first: `app.alerts.find(target="shop:charge")`.

        Filters: `target, error_hash, error_class, created_after, created_before` (when it was raised).
        """
        self._authorization.check("alerts")
        asked = (with_names(checked_alert_filters(filters), self._names_of), spot_of(cursor), checked_limit(limit))
        return _alerts(*self._access.read(alerts.find, *asked))

    async def afind(
        self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[AlertFilterWords]
    ) -> Page[Alert]:
        """Async twin of `find`."""
        await self._authorization.acheck("alerts")
        asked = (with_names(checked_alert_filters(filters), self._names_of), spot_of(cursor), checked_limit(limit))
        return _alerts(*await self._access.aread(alerts.find, *asked))


class Triage:
    """The part of an application that deals with what has failed for good."""

    registry: Registry
    _access: Access
    _aftermath: Aftermath
    _authorization: Authorization

    @property
    def dead_letters(self) -> DeadLetters:
        """Jobs that failed for good: `find`, `get`, `groups`, `redrive`, `purge`."""
        return DeadLetters(self._access, self._aftermath, self._authorization, self.registry.names_of)

    @property
    def alerts(self) -> Alerts:
        """What they were alerted of: `find`."""
        return Alerts(self._access, self._authorization, self.registry.names_of)


def _get(dialect: Dialect, job_id: str) -> Plan[tuple[Sequence[Any] | None, reads.StoredJob | None]]:
    rows = yield from triage.load(dialect, [job_id])
    if rows:
        return rows[0], None
    return None, (yield from reads.get(dialect, job_id))


def _letter(job_id: str, row: Sequence[Any] | None, job: reads.StoredJob | None) -> DeadLetter:
    if row is not None:
        return letter_of(row)
    if job is None:
        raise JobNotFoundError(UUID(job_id))
    raise JobStateError(UUID(job_id), f"it is no dead letter, but {job.row[3]}; look at it with app.get(id)")


def _page(rows: Sequence[Sequence[Any]], spot: triage.Spot | None) -> Page[DeadLetter]:
    return Page([letter_of(row) for row in rows], cursor_of(spot))


def _alerts(rows: Sequence[Sequence[Any]], spot: alerts.AlertSpot | None) -> Page[Alert]:
    return Page([alert_of(row) for row in rows], cursor_of(spot))


def _of(page: Page[DeadLetter], allowed: Collection[UUID]) -> Page[DeadLetter]:
    """Without those of jobs that may not be got."""
    return Page([letter for letter in page if letter.job_id in allowed], page.next_cursor)


def _order(
    checked: triage.LetterFilters,
    limit: int,
    rate: float | None,
    dry_run: bool,
    stop_at: float | None,
    note: str,
    filters: DeadLetterFilters,
    who: str,
) -> Order:
    asked = {name: value for name, value in filters.items() if value is not None}
    if checked.target is not None:
        asked["target"] = checked.target
    return Order(checked, limit, rate, bool(dry_run), stop_at, note, asked, who)


def _purging(older_than: float | timedelta, who: str) -> tuple[int, AuditEntry]:
    age = seconds(older_than, "older_than")
    entry = AuditEntry(new_job_id(), who, "dead_letters.purge", 0, {"older_than": age})
    return int(age * MICROSECONDS), entry
