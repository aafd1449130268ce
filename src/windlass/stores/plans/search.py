"""The plan of `app.find`: matching jobs, newest first, a page at a time, wherever they are stored.

A page reads a bounded number of rows in the order of ids, from the sources that can hold matches. Filters without an
index are checked on the rows read, so that a page may come back short, even empty, and still have a next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from windlass.domain.batch import BATCH_TARGET
from windlass.domain.clock import micros
from windlass.domain.identity import LAST_ID, lowest_job_id
from windlass.domain.states import JobStatus
from windlass.domain.tags import tags_of
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import reads

MOST_READ = 20_000
"""Largest number of rows that one page reads."""
SMALLEST_WINDOW = 128
SKEW_US = 3_600_000_000
"""Largest difference between the clock of a process that creates ids and the store's."""


class Filters(NamedTuple):
    """What is searched for; None matches anything."""

    status: JobStatus | None = None
    queue: str | None = None
    tag: str | None = None
    target: str | None = None
    business_key: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    ids_have_times: bool = True
    """Whether ids and creation times come from the same clock; False with a test's own clock."""
    aliases: frozenset[str] = frozenset()
    """Other names of the same target."""
    without: str | None = None
    """A target whose jobs are left out."""

    def fits(self, status: str | None, queue: str, target: str, created_at: int) -> bool:
        """Return whether a row matches, judged by its columns."""
        return (
            (self.status is None or status == self.status.value)
            and (self.queue is None or queue == self.queue)
            and (self.target is None or target == self.target or target in self.aliases)
            and target != self.without
            and (self.created_after is None or created_at >= micros(self.created_after))
            and (self.created_before is None or created_at < micros(self.created_before))
        )


class SearchPage(NamedTuple):
    """Ids of one page, and where the next one begins; None when there is nothing more."""

    ids: list[str]
    next_before: str | None


def find(
    dialect: Dialect, filters: Filters, before: str | None, limit: int
) -> Plan[tuple[list[reads.StoredJob], str | None]]:
    """Return one page of jobs, newest first."""
    found = yield from find_ids(dialect, filters, before, limit)
    stored = (yield from reads.get_many(dialect, found.ids)) if found.ids else []
    return stored, found.next_before


def find_ids(
    dialect: Dialect, filters: Filters, before: str | None, limit: int, *, archived: bool = True
) -> Plan[SearchPage]:
    """Return only their ids."""
    if filters.tag is not None and filters.business_key is not None:
        found = yield from find_ids(dialect, filters._replace(tag=None), before, limit, archived=archived)
        stored = (yield from reads.get_many(dialect, found.ids)) if found.ids else []
        return found._replace(ids=[one.job["id"] for one in stored if filters.tag in tags_of(one.job["tags"])])
    position = before if before is not None else _top(filters)
    bottom = _bottom(filters)
    ids: list[str] = []
    read, window = 0, 1 << max(limit, SMALLEST_WINDOW).bit_length()
    while read < MOST_READ:
        rows, position, more = yield from _next_rows(filters, position, window, archived=archived)
        read += max(len(rows), 1)
        for job, *facts in rows:
            if job < bottom:
                return SearchPage(ids, None)
            if facts[0] is not None and filters.fits(*facts):  # None: only its tag still exists
                ids.append(job)
                if len(ids) == limit:
                    return SearchPage(ids, job)
        if not more:
            return SearchPage(ids, None)
        window = min(window * 2, 4096)
    return SearchPage(ids, position)


def _next_rows(
    filters: Filters, before: str, window: int, *, archived: bool
) -> Plan[tuple[list[Sequence[Any]], str, bool]]:
    """Return rows of all sources in one order, cut where an incomplete source ends: beyond it the order is unknown."""
    chunks: list[list[Sequence[Any]]] = []
    for name in _sources(filters):
        if name.startswith("find_archived") and not archived:
            continue
        status = filters.status.value if filters.status else None
        params = {"before": before, "tag": filters.tag, "key": filters.business_key, "status": status}
        chunks.append((yield Step(name, params, literals={"window": window})))
    cut = max((chunk[-1][0] for chunk in chunks if len(chunk) == window), default="")
    # By id: a job that moves to the archive between two statements is in both.
    found = {row[0]: row for chunk in chunks for row in chunk if row[0] >= cut}
    return [found[job] for job in sorted(found, reverse=True)], cut, bool(cut)


def _sources(filters: Filters) -> tuple[str, ...]:
    if filters.tag is not None:
        return ("find_tagged",)
    if filters.business_key is not None:
        return ("find_keyed", "find_archived_keyed")
    if filters.target == BATCH_TARGET:
        return ("find_batches",)
    match filters.status:
        case None:
            return ("find_any", "find_archived")
        case JobStatus.PENDING:
            return ("find_live",)
        case JobStatus.RUNNING:
            return ("find_running",)
        case JobStatus.WAITING:
            return ("find_resting",)
        case JobStatus.PAUSED:
            return ("find_resting", "find_ended")
        case JobStatus.SUCCEEDED:
            return ("find_done", "find_archived")
        case JobStatus.FAILED | JobStatus.CANCELED:
            return ("find_ended", "find_archived_ended")


def _top(filters: Filters) -> str:
    if filters.created_before is None or not filters.ids_have_times:
        return LAST_ID
    return lowest_job_id(micros(filters.created_before) + SKEW_US)


def _bottom(filters: Filters) -> str:
    if filters.created_after is None or not filters.ids_have_times:
        return ""
    return lowest_job_id(micros(filters.created_after) - SKEW_US)
