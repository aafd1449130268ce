"""`app.rejects`: find, group and re-drive items that were given up while their execution went on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from windlass.client.dead_letter_views import cursor_of, spot_of
from windlass.client.execution_verbs import OneExecutionVerbs
from windlass.client.filters import Page, checked_limit
from windlass.client.redrive_order import Order, process_owner
from windlass.client.reject_filters import RejectFiltersDict, checked_grouping, checked_reject_filters
from windlass.client.reject_redrives import redrive
from windlass.domain.clock import from_micros
from windlass.domain.reject import Reject, RejectGroup, RejectRedrive
from windlass.pipelines.execution_submitter import ExecutionSubmitter
from windlass.pipelines.reject_records import unpacked
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.plans import rejects
from windlass.stores.plans.rejects import CountedRejects, RejectSpot
from windlass.stores.plans.triage import LetterFilters

OnProgress = Callable[[RejectRedrive], object]


class AppRejects:
    """`app.rejects`: items that were given up, each with the envelope that was stored in the transaction of its step.

    Filters, everywhere: `tenant, pipeline, step, fingerprint, error_class, execution_id, created_after, created_before`
    (of its rejection). Without `tenant`, those of all tenants: the operator's view.
    """

    def __init__(self, verbs: OneExecutionVerbs, submitter: ExecutionSubmitter) -> None:
        self._verbs = verbs
        self._submitter = submitter

    # ------------------------------------------------------------------ looking

    def find(
        self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[RejectFiltersDict]
    ) -> Page[Reject]:
        """Return rejects that match every filter given, latest first.

        A page reads a bounded number of rows: where few of many match, it may hold fewer than `limit`, even none, and
        still have a `next_cursor`.
        """
        return drive(self._find(cursor, limit, filters))

    async def afind(
        self, *, cursor: str | None = None, limit: int = 100, **filters: Unpack[RejectFiltersDict]
    ) -> Page[Reject]:
        """Async twin of `find`."""
        return await adrive(self._find(cursor, limit, filters))

    def _find(self, cursor: str | None, limit: int, filters: RejectFiltersDict) -> Verb[Page[Reject]]:
        jobs = self._verbs.jobs
        yield from jobs.authorization.check("rejects")
        spot = spot_of(cursor)
        start = None if spot is None else RejectSpot(*spot)
        wanted = (checked_reject_filters(filters, "find"), start, checked_limit(limit))
        rows, following = yield from jobs.access.read(rejects.page, *wanted)
        visible = yield from jobs.authorization.visible([self._verbs.reader.reject(row) for row in rows])
        return Page(visible, cursor_of(following))

    def groups(
        self, by: str = "fingerprint", *, limit: int = 100, **filters: Unpack[RejectFiltersDict]
    ) -> list[RejectGroup]:
        """Return rejects grouped by `"fingerprint"`, `"error_class"` or `"step"`, largest group first.

        Each has its share of the rejects that were counted, which are the latest 20,000 that match.
        """
        return drive(self._groups(by, limit, filters))

    async def agroups(
        self, by: str = "fingerprint", *, limit: int = 100, **filters: Unpack[RejectFiltersDict]
    ) -> list[RejectGroup]:
        """Async twin of `groups`."""
        return await adrive(self._groups(by, limit, filters))

    def _groups(self, by: str, limit: int, filters: RejectFiltersDict) -> Verb[list[RejectGroup]]:
        jobs = self._verbs.jobs
        yield from jobs.authorization.check("rejects")
        wanted = (checked_reject_filters(filters, "groups"), checked_grouping(by), checked_limit(limit))
        return [_group(group) for group in (yield from jobs.access.read(rejects.groups, *wanted))]

    # ------------------------------------------------------------------ re-driving

    def redrive(
        self,
        *,
        limit: int = 100,
        rate: float | None = None,
        dry_run: bool = False,
        note: str = "",
        on_progress: OnProgress | None = None,
        **filters: Unpack[RejectFiltersDict],
    ) -> RejectRedrive:
        """Run items of rejects that fit again, the oldest first, up to `limit` (1 to 100,000) of them.

        Each enters its own step of a new execution, whose key is its fingerprint: an item that was re-driven before is
        a duplicate, and does not run again. This needs items that were kept (`include_payload`), and the definition of
        the pipeline, which must be declared here. It goes in batches of at most 100, each a transaction of its own with
        its entry in the audit log, at no more than `rate` items per second. A `dry_run` selects, and touches nothing.
        `note` is kept in the audit log. `on_progress` is called with the sum so far after every batch.
        """
        return drive(self._redrive((limit, rate, dry_run, note), filters, on_progress))

    async def aredrive(
        self,
        *,
        limit: int = 100,
        rate: float | None = None,
        dry_run: bool = False,
        note: str = "",
        on_progress: OnProgress | None = None,
        **filters: Unpack[RejectFiltersDict],
    ) -> RejectRedrive:
        """Async twin of `redrive`."""
        return await adrive(self._redrive((limit, rate, dry_run, note), filters, on_progress))

    def _redrive(
        self,
        options: tuple[int, float | None, bool, str],
        filters: RejectFiltersDict,
        on_progress: OnProgress | None,
    ) -> Verb[RejectRedrive]:
        jobs = self._verbs.jobs
        yield from jobs.authorization.check("redrive")
        checked = checked_reject_filters(filters, "redrive")
        asked = {name: str(value) for name, value in filters.items() if value is not None}
        limit, rate, dry_run, note = options
        principal = jobs.authorization.name() or process_owner()
        order = Order(LetterFilters(), limit, rate, dry_run, None, note, asked, principal)
        return (yield from redrive(order, checked, self._verbs, self._submitter, on_progress))


def _group(group: CountedRejects) -> RejectGroup:
    return RejectGroup(
        key=group.key,
        count=group.size,
        share=group.size / group.total,
        first_at=from_micros(group.first_at),
        last_at=from_micros(group.last_at),
        sample="" if group.latest is None else unpacked(group.latest.envelope).error_message,
    )
