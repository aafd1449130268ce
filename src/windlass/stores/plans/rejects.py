"""Plans for rejects: stored in the transaction of their step, found, grouped and purged.

A page reads a bounded number of rows along the index of one filter, in the order of rejection, and checks the other
filters on the rows read. So it may come back short, even empty, and still have a next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.clock import END_OF_TIME
from windlass.domain.deliveries import REJECT
from windlass.domain.execution_items import NewReject, OutboxReject
from windlass.domain.identity import FIRST_ID, LAST_ID
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import outbox
from windlass.stores.plans.dead_letters import Purged
from windlass.stores.plans.outbox import OutboxRow

MOST_READ: Final = 20_000
"""Largest number of rows that one page, or the groups of a filter, read."""
SMALLEST_WINDOW: Final = 128
LARGEST_WINDOW: Final = 4096
OLDER: Final = {
    "any": "older_rejects_of_any",
    "fingerprint": "older_rejects_of_fingerprint",
    "execution": "older_rejects_of_execution",
    "step": "older_rejects_of_step",
    "error_class": "older_rejects_of_error_class",
    "pipeline": "older_rejects_of_pipeline",
    "tenant": "older_rejects_of_tenant",
}
NEWER: Final = {
    "any": "newer_rejects_of_any",
    "fingerprint": "newer_rejects_of_fingerprint",
    "execution": "newer_rejects_of_execution",
    "step": "newer_rejects_of_step",
    "error_class": "newer_rejects_of_error_class",
    "pipeline": "newer_rejects_of_pipeline",
    "tenant": "newer_rejects_of_tenant",
}
"""Statements by the filter whose index they follow, in either direction of time."""
STORED_COLUMNS: Final = 12
"""The first fields of `NewReject`, which have columns."""


def store(dialect: Dialect, rejects: Sequence[NewReject]) -> Plan[frozenset[str]]:
    """Store rejects, each once, and count them for their executions; return the ids of those that are new.

    Those that the store does not keep, since their pipeline has another sink, are only counted. New ones whose sink is
    outside of the store are put into the outbox, too.
    """
    kept = [reject for reject in rejects if reject.kept]
    rows = (yield Step("insert_rejects", {"rows": json_text([one[:STORED_COLUMNS] for one in kept])})) if kept else []
    new = {row[0] for row in rows}
    outgoing = [_outgoing(one, one.outgoing) for one in kept if one.outgoing is not None and one.id in new]
    if outgoing:
        yield from outbox.store(dialect, outgoing)
    counts: Counter[str] = Counter()
    for reject in rejects:
        if not reject.kept or reject.id in new:
            counts[reject.execution_id] += reject.item_count
    for execution, added in sorted(counts.items()):
        yield Step("count_rejected", {"id": execution, "added": added})
    return frozenset(new | {reject.id for reject in rejects if not reject.kept})


def _outgoing(reject: NewReject, given: OutboxReject) -> OutboxRow:
    names = (reject.pipeline, reject.tenant, given.correlation_id)
    return OutboxRow(REJECT, reject.id, given.destination, *names, given.payload)


# ---------------------------------------------------------------------- pages


class RejectFilters(NamedTuple):
    """What is searched for; None matches anything."""

    fingerprint: str | None = None
    execution_id: str | None = None
    pipeline: str | None = None
    step: str | None = None
    error_class: str | None = None
    tenant: str | None = None
    after: int | None = None
    """Rejected at that time or later, in microseconds."""
    before: int | None = None
    open_only: bool = False
    """Whether those that were re-driven are left out."""

    @property
    def lead(self) -> tuple[str, str | None]:
        """The filter whose index is followed, the most selective first, and its value."""
        if self.fingerprint is not None:
            return "fingerprint", self.fingerprint
        if self.execution_id is not None:
            return "execution", self.execution_id
        if self.pipeline is not None and self.step is not None:
            return "step", self.pipeline
        if self.error_class is not None:
            return "error_class", self.error_class
        if self.pipeline is not None:
            return "pipeline", self.pipeline
        return ("any", None) if self.tenant is None else ("tenant", self.tenant)

    @property
    def needs_checks(self) -> bool:
        """Whether there are more filters than that of the index."""
        given = sum(value is not None for value in self[:6])
        return self.open_only or given > (2 if self.lead[0] == "step" else 1)

    def fits(self, facts: RejectFacts) -> bool:
        """Return whether a reject matches."""
        return (
            (self.fingerprint is None or facts.fingerprint == self.fingerprint)
            and (self.execution_id is None or facts.execution_id == self.execution_id)
            and (self.pipeline is None or facts.pipeline == self.pipeline)
            and (self.step is None or facts.step == self.step)
            and (self.error_class is None or facts.error_class == self.error_class)
            and (self.tenant is None or facts.tenant == self.tenant)
            and (self.after is None or facts.at >= self.after)
            and (self.before is None or facts.at < self.before)
            and not (self.open_only and facts.redriven_as is not None)
        )


class RejectFacts(NamedTuple):
    """The columns by which a reject is found."""

    id: str
    at: int
    tenant: str
    pipeline: str
    step: str
    fingerprint: str
    error_class: str
    execution_id: str
    redriven_as: str | None


class StoredReject(NamedTuple):
    """A reject as it is stored."""

    id: str
    execution_id: str
    step: int
    item: str
    tenant: str
    pipeline: str
    step_name: str
    fingerprint: str
    error_class: str
    envelope: str
    payload: str | None
    type: int | None
    redriven_as: str | None
    at: int


class RejectSpot(NamedTuple):
    """A position in the order of rejection."""

    at: int
    id: str


class RejectPage(NamedTuple):
    """Some rejects, and where the next ones begin; None when there is nothing more."""

    rejects: list[RejectFacts]
    next_spot: RejectSpot | None


def find(filters: RejectFilters, spot: RejectSpot | None, limit: int) -> Plan[RejectPage]:
    """Return matching rejects, latest first."""
    found: list[RejectFacts] = []
    here = spot or RejectSpot(END_OF_TIME, LAST_ID)
    read = 0
    while len(found) < limit and read < MOST_READ:
        page, rows = yield from _window(filters, here, limit - len(found), OLDER)
        read += max(rows, 1)
        found += page.rejects
        if page.next_spot is None:
            return RejectPage(found, None)
        here = page.next_spot
    return RejectPage(found, here)


def oldest(filters: RejectFilters, spot: RejectSpot | None, limit: int) -> Plan[RejectPage]:
    """Return the next matching rejects of a window, oldest first."""
    page, _ = yield from _window(filters, spot or RejectSpot(-1, FIRST_ID), limit, NEWER)
    return page


def page(
    dialect: Dialect, filters: RejectFilters, spot: RejectSpot | None, limit: int
) -> Plan[tuple[list[StoredReject], RejectSpot | None]]:
    """Do `find`, with whole rejects."""
    found = yield from find(filters, spot, limit)
    return (yield from load(dialect, [facts.id for facts in found.rejects])), found.next_spot


def load(dialect: Dialect, ids: Sequence[str]) -> Plan[list[StoredReject]]:
    """Return whole rejects, in the order of these ids."""
    if not ids:
        return []
    rows = yield Step("get_rejects", {"ids": dialect.ids(ids)})
    found = {row[0]: StoredReject(*row) for row in rows}
    return [found[one] for one in ids if one in found]


def _window(
    filters: RejectFilters, spot: RejectSpot, limit: int, way: Mapping[str, str]
) -> Plan[tuple[RejectPage, int]]:
    """Return up to `limit` of the next rows within a window, and the number of rows read."""
    older = way is OLDER
    if older and filters.before is not None and spot.at > filters.before:
        spot = RejectSpot(filters.before, FIRST_ID)
    if not older and filters.after is not None and spot.at < filters.after:
        spot = RejectSpot(filters.after, FIRST_ID)
    lead, value = filters.lead
    size = LARGEST_WINDOW if filters.needs_checks else _size(limit)
    params: dict[str, Any] = {"at": spot.at, "id": spot.id}
    if value is not None:
        params["value"] = value
    if lead == "step":
        params["step"] = filters.step
    rows = yield Step(way[lead], params, literals={"window": size})
    facts = [RejectFacts._make(row) for row in rows]
    fitting = [one for one in facts if filters.fits(one)]
    if len(fitting) >= limit:
        return RejectPage(fitting[:limit], _spot(fitting[limit - 1])), len(rows)
    if len(rows) < size or _beyond(filters, facts[-1], older=older):
        return RejectPage(fitting, None), len(rows)
    return RejectPage(fitting, _spot(facts[-1])), len(rows)


def _spot(facts: RejectFacts) -> RejectSpot:
    return RejectSpot(facts.at, facts.id)


def _size(limit: int) -> int:
    """Return one of a few sizes: each is a separate statement."""
    return next(size for size in (SMALLEST_WINDOW, 1024, LARGEST_WINDOW) if size >= min(limit, LARGEST_WINDOW))


def _beyond(filters: RejectFilters, last: RejectFacts, *, older: bool) -> bool:
    if older:
        return filters.after is not None and last.at < filters.after
    return filters.before is not None and last.at >= filters.before


# ---------------------------------------------------------------------- groups


class CountedRejects(NamedTuple):
    """Rejects that have something in common."""

    key: str
    size: int
    total: int
    """Number of all rejects that were counted."""
    first_at: int
    last_at: int
    latest: StoredReject | None


def groups(dialect: Dialect, filters: RejectFilters, by: str, limit: int) -> Plan[list[CountedRejects]]:
    """Return the latest matching rejects by one of their facts, largest group first."""
    found = (yield from find(filters, None, MOST_READ)).rejects
    members: dict[str, list[RejectFacts]] = {}
    for facts in found:  # the latest first
        members.setdefault(getattr(facts, by), []).append(facts)
    largest = sorted(members, key=lambda key: (-len(members[key]), key))[:limit]
    latest = yield from load(dialect, [members[key][0].id for key in largest])
    by_id: Mapping[str, StoredReject] = {one.id: one for one in latest}
    return [
        CountedRejects(key, len(some), len(found), some[-1].at, some[0].at, by_id.get(some[0].id))
        for key in largest
        if (some := members[key])
    ]


# ---------------------------------------------------------------------- retention


def purge(dialect: Dialect, older_than_us: int, limit: int, after: tuple[int, str]) -> Plan[Purged]:
    """Delete up to `limit` rejects that are older."""
    del after  # everything that is old enough goes
    old = yield Step("old_rejects", {"older_than_us": older_than_us}, literals={"window": limit})
    if old:
        yield Step("purge_rejects", {"ids": dialect.ids([row[0] for row in old])})
    return Purged(len(old), (old[-1][1], old[-1][0]) if len(old) == limit else None)
