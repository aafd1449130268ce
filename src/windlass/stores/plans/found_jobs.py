"""Plans that move the jobs which match filters, or have a tag."""

from __future__ import annotations

from windlass.domain.batch import BATCH_TARGET
from windlass.stores.dialect import Dialect
from windlass.stores.ending import FollowUps, MovedJobs
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import search
from windlass.stores.plans.moves import retry


def retry_found(dialect: Dialect, filters: search.Filters, limit: int, follow_ups: FollowUps = ()) -> Plan[MovedJobs]:
    """Do `retry` for matching jobs, newest first."""
    ids = yield from failed_ids(dialect, filters, limit)
    return (yield from retry(dialect, ids, follow_ups)) if ids else MovedJobs([])


def failed_ids(dialect: Dialect, filters: search.Filters, limit: int) -> Plan[list[str]]:
    """Return up to `limit` dead letters that are not archived, newest first."""
    filters = filters._replace(without=BATCH_TARGET)
    ids: list[str] = []
    before: str | None = None
    while len(ids) < limit:
        found = yield from search.find_ids(dialect, filters, before, limit - len(ids), archived=False)
        ids += found.ids
        before = found.next_before
        if before is None:
            break
    return ids


def tagged(dialect: Dialect, tag: str, after: str) -> Plan[list[str]]:
    """Return the next live jobs of a tag, in the order of their ids."""
    del dialect
    rows = yield Step("tagged", {"tag": tag, "after": after})
    return [job for (job,) in rows]
