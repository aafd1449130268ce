"""`app.dead_letters` and `app.alerts`: find, re-drive and purge jobs and executions that failed for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, Unpack
from uuid import UUID

from windlass.client.dead_letter_views import (
    AlertFilter,
    DeadLetterFilters,
    RedriveFilters,
    alert_of,
    checked_alert_filters,
    checked_kind,
    checked_letter_filters,
    cursor_of,
    group_of,
    spot_of,
)
from windlass.client.filters import NamesOf, Page, checked_limit, with_names
from windlass.client.redrive_order import Order, process_owner
from windlass.client.redrive_totals import LimitOf
from windlass.client.redrives import OnProgress, redrive
from windlass.domain.clock import MICROSECONDS
from windlass.domain.dead_letter import Alert, DeadLetter, DeadLetterGroup, Redrive
from windlass.domain.durations import seconds
from windlass.domain.identity import new_job_id, parse_job_id
from windlass.errors import JobNotFoundError, JobStateError
from windlass.failure.dead_letter_records import letter_of
from windlass.publisher import Publisher
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.access import Access
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps
from windlass.stores.plan import Plan
from windlass.stores.plans import alerts, dead_letters, reads, triage
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.submission.authorization import Authorization

PURGE_BATCH: Final = 500


class DeadLetters:
    """`app.dead_letters`: jobs and executions that failed for good, each with the envelope stored at its failure.

    Filters, everywhere: `fingerprint, target, error_class, reason, queue, tag, created_after, created_before` (of its
    failure). The target of an execution is its pipeline. `kind` is `"job"`, `"execution"` or None for both. It is the
    view of operators: of all tenants. A PAUSED job does not count as a dead letter.
    """

    def __init__(
        self,
        access: Access,
        publisher: Publisher,
        follow_ups: FollowUps,
        authorization: Authorization,
        names_of: NamesOf,
        limit_of: LimitOf,
    ) -> None:
        self._access = access
        self._publisher = publisher
        self._follow_ups = follow_ups
        self._authorization = authorization
        self._names_of = names_of
        self._limit_of = limit_of

    def _asked(self, filters: RedriveFilters, verb: str) -> triage.LetterFilters:
        return with_names(checked_letter_filters(filters, verb), self._names_of)

    def _actor(self) -> str:
        """Return the principal for the audit log, else the user of this process."""
        return self._authorization.name() or process_owner()

    # ------------------------------------------------------------------ looking

    def find(
        self,
        kind: str | None = None,
        *,
        cursor: str | None = None,
        limit: int = 100,
        **filters: Unpack[DeadLetterFilters],
    ) -> Page[DeadLetter]:
        """Return dead letters that match every filter given, latest first.

        A page reads a bounded number of rows: where few of many match, it may hold fewer than `limit`, even none, and
        still have a `next_cursor`.
        """
        return drive(self._find(kind, cursor, limit, filters))

    async def afind(
        self,
        kind: str | None = None,
        *,
        cursor: str | None = None,
        limit: int = 100,
        **filters: Unpack[DeadLetterFilters],
    ) -> Page[DeadLetter]:
        """Async twin of `find`."""
        return await adrive(self._find(kind, cursor, limit, filters))

    def _find(
        self, kind: str | None, cursor: str | None, limit: int, filters: DeadLetterFilters
    ) -> Verb[Page[DeadLetter]]:
        yield from self._authorization.check("dead_letters")
        wanted = (self._asked({**filters, "kind": kind}, "find"), spot_of(cursor), checked_limit(limit))
        rows, spot = yield from self._access.read(triage.page, *wanted)
        visible = yield from self._authorization.visible([letter_of(row) for row in rows])
        return Page(visible, cursor_of(spot))

    def get(self, job_id: UUID | str) -> DeadLetter:
        """Return the dead letter of a job or an execution.

        `JobNotFoundError` if there is no such job, `JobStateError` if it is not one.
        """
        return drive(self._get(job_id))

    async def aget(self, job_id: UUID | str) -> DeadLetter:
        """Async twin of `get`."""
        return await adrive(self._get(job_id))

    def _get(self, job_id: UUID | str) -> Verb[DeadLetter]:
        key = parse_job_id(job_id)
        yield from self._authorization.check("get", key)
        row, job = yield from self._access.read(_letter_or_job, key)
        if row is not None:
            return letter_of(row)
        if job is None:
            raise JobNotFoundError(UUID(key))
        raise JobStateError(UUID(key), f"it is not a dead letter, but {job.job['status']}; look at it with app.get(id)")

    def groups(
        self, kind: str | None = None, *, limit: int = 100, **filters: Unpack[DeadLetterFilters]
    ) -> list[DeadLetterGroup]:
        """Return dead letters grouped by fingerprint (target, error class, shape of message), largest group first.

        Of executions, the step counts too. With filters other than `fingerprint`, `target` and `error_class` the latest
        20,000 matches are counted.
        """
        return drive(self._groups(kind, limit, filters))

    async def agroups(
        self, kind: str | None = None, *, limit: int = 100, **filters: Unpack[DeadLetterFilters]
    ) -> list[DeadLetterGroup]:
        """Async twin of `groups`."""
        return await adrive(self._groups(kind, limit, filters))

    def _groups(self, kind: str | None, limit: int, filters: DeadLetterFilters) -> Verb[list[DeadLetterGroup]]:
        yield from self._authorization.check("dead_letters")
        wanted = (self._asked({**filters, "kind": kind}, "groups"), checked_limit(limit))
        return [group_of(group) for group in (yield from self._access.read(triage.groups, *wanted))]

    # ------------------------------------------------------------------ starting over

    def redrive(
        self,
        limit: int = 100,
        rate: float | None = None,
        dry_run: bool = False,
        stop_at: float | None = None,
        note: str = "",
        *,
        wait: bool = False,
        on_progress: OnProgress | None = None,
        **filters: Unpack[RedriveFilters],
    ) -> Redrive:
        """Start dead letters that fit over, the oldest first, up to `limit` (1 to 100,000) of them.

        It goes in batches of at most 100, each a transaction of its own with its entry in the audit log, at no more
        than `rate` jobs per second. It stops when more than the share `stop_at` (0 to 1; None is a half, 1 is never) of
        at least 20 jobs that have ended since have failed again. A job whose business key another one holds is skipped,
        and so is one of an archived flow of more than 1,000 jobs. A `dry_run` selects, and touches nothing. `note` is
        kept in the audit log. With `wait` it returns when all of them have ended, or too many have failed again.
        `on_progress` is called with the sum so far after every batch, and while it waits. Executions go on at the step
        that failed, with all its retries; `app.executions.redrive` starts one over from elsewhere.
        """
        return drive(self._redrive((limit, rate, dry_run, stop_at, note), filters, wait, on_progress))

    async def aredrive(
        self,
        limit: int = 100,
        rate: float | None = None,
        dry_run: bool = False,
        stop_at: float | None = None,
        note: str = "",
        *,
        wait: bool = False,
        on_progress: OnProgress | None = None,
        **filters: Unpack[RedriveFilters],
    ) -> Redrive:
        """Async twin of `redrive`."""
        return await adrive(self._redrive((limit, rate, dry_run, stop_at, note), filters, wait, on_progress))

    def _redrive(
        self,
        options: tuple[int, float | None, bool, float | None, str],
        filters: RedriveFilters,
        wait: bool,
        on_progress: OnProgress | None,
    ) -> Verb[Redrive]:
        yield from self._authorization.check("redrive")
        checked = self._asked(filters, "redrive")
        asked = {name: value for name, value in filters.items() if value is not None}
        if checked.target is not None:
            asked["target"] = checked.target
        order = Order(checked, *options, asked, self._actor(), wait)
        run_by = (self._access, self._publisher, self._follow_ups, self._limit_of)
        return (yield from redrive(order, *run_by, on_progress))

    # ------------------------------------------------------------------ forgetting

    def purge(self, older_than: float | timedelta, *, kind: str | None = None) -> int:
        """Delete jobs and executions that failed for good longer ago than so many seconds; return how many.

        In batches, live or archived, with all their data, and alerts of that age unless `kind` is given. Only the
        idempotency keys of jobs stay. Jobs of a flow of which another job has not ended are kept.
        """
        return drive(self._purge(older_than, kind))

    async def apurge(self, older_than: float | timedelta, *, kind: str | None = None) -> int:
        """Async twin of `purge`."""
        return await adrive(self._purge(older_than, kind))

    def _purge(self, older_than: float | timedelta, kind: str | None) -> Verb[int]:
        yield from self._authorization.check("purge")
        age, chosen = seconds(older_than, "older_than"), checked_kind(kind)
        detail = {"older_than": age} if chosen is None else {"older_than": age, "kind": chosen}
        entry = AuditEntry(new_job_id(), self._actor(), "dead_letters.purge", 0, detail)
        age_us = int(age * MICROSECONDS)
        after: tuple[int, str] | None = dead_letters.FIRST
        while after is not None:
            gone, after = yield from self._access.run(dead_letters.purge, age_us, PURGE_BATCH, after, entry, chosen)
            entry = entry._replace(affected=entry.affected + gone)
        return entry.affected


class Alerts:
    """`app.alerts`: alerts that jobs have begun to fail with one kind of error, kept until dead letters are purged."""

    def __init__(self, access: Access, authorization: Authorization, names_of: NamesOf) -> None:
        self._access = access
        self._authorization = authorization
        self._names_of = names_of

    def find(self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[AlertFilter]) -> Page[Alert]:
        """Return alerts that match every filter given, latest first: `app.alerts.find(target="shop:charge")`.

        Filters: `target, error_hash, error_class, created_after, created_before` (when it was raised).
        """
        return drive(self._find(cursor, limit, filters))

    async def afind(
        self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[AlertFilter]
    ) -> Page[Alert]:
        """Async twin of `find`."""
        return await adrive(self._find(cursor, limit, filters))

    def _find(self, cursor: str | None, limit: int, filters: AlertFilter) -> Verb[Page[Alert]]:
        yield from self._authorization.check("alerts")
        wanted = (with_names(checked_alert_filters(filters), self._names_of), spot_of(cursor), checked_limit(limit))
        rows, spot = yield from self._access.read(alerts.find, *wanted)
        return Page([alert_of(row) for row in rows], cursor_of(spot))


def _letter_or_job(dialect: Dialect, job_id: str) -> Plan[tuple[Sequence[Any] | None, reads.StoredJob | None]]:
    rows = yield from triage.load(dialect, [job_id])
    if rows:
        return rows[0], None
    return None, (yield from reads.get(dialect, job_id))
