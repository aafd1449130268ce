"""Plans for the archive: ended jobs in one row each, outside the working tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from windlass.domain.identity import lowest_job_id
from windlass.runtime.failpoints import reached
from windlass.stores.columns import ATTEMPT, STORED_JOB
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import reads

WINDOW = 1024
"""Number of ended jobs that one statement checks."""
MOST_LOOKED_AT = 20 * WINDOW
SKEW_US = 3_600_000_000
"""Largest difference between the clock of a process that creates ids and the store's."""
FIRST_ID = "00000000-0000-0000-0000-000000000000"
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

_FORGET = ("forget_ended", "forget_jobs", "forget_attempts", "forget_progress", "forget_lines")


class OldJobs(NamedTuple):
    """Jobs that are old enough, and where to continue; None when all have been checked."""

    ids: list[str]
    next_after: str | None


class Moved(NamedTuple):
    """Number of jobs that were moved, and their size in bytes."""

    jobs: int
    size: int


def old_jobs(dialect: Dialect, age_us: int, after: str, limit: int, *, ids_tell_time: bool = True) -> Plan[OldJobs]:
    """Return the next jobs in the order of ids that ended so long ago; only reads.

    A job cannot have ended before its id was created, so nothing younger is checked. `ids_tell_time`: False with a
    test's own clock.
    """
    del dialect
    top = LAST_ID
    if ids_tell_time:
        (now,) = yield Step("store_time")
        top = lowest_job_id(now - age_us + SKEW_US)
    old: list[str] = []
    looked_at = 0
    while looked_at < MOST_LOOKED_AT:
        rows = yield Step("oldest_ended", {"after": after, "age_us": age_us}, literals={"window": WINDOW})
        for job, is_old in rows:
            if job >= top:
                return OldJobs(old, None)
            after = job
            if is_old:
                old.append(job)
                if len(old) == limit:
                    return OldJobs(old, after)
        if len(rows) < WINDOW:
            return OldJobs(old, None)
        looked_at += len(rows)
    return OldJobs(old, after)


def move(dialect: Dialect, ids: Sequence[str], age_us: int = 0) -> Plan[Moved]:
    """Move jobs that ended so long ago, with their history, into the archive; skip others.

    The number of statements is the same for one job and for hundreds.
    """
    locked = yield Step("lock_archivable", {"ids": dialect.ids(ids), "age_us": age_us})
    if not locked:
        return Moved(0, 0)
    chosen = {"ids": dialect.ids([job for (job,) in locked])}
    jobs = [reads.named(STORED_JOB, row) for row in (yield Step("get_jobs", chosen))]
    history = [reads.named(ATTEMPT, row) for row in (yield Step("histories", chosen))]
    attempts = {job: list(rows) for job, rows in groupby(history, itemgetter("job_id"))}
    rows = [reads.packed(job, attempts.get(job["id"], [])) for job in jobs]
    yield Step("archive_jobs", {"rows": json_text(rows)})
    reached("archive.copied")
    for step in _FORGET:
        yield Step(step, chosen)
    return Moved(len(rows), sum(len(row[-1]) for row in rows))


def bring_back(dialect: Dialect, ids: Sequence[str]) -> Plan[int]:
    """Move archived dead letters back to the working tables; return how many. Other jobs are skipped."""
    found = yield Step("lock_archived", {"ids": dialect.ids(ids)})
    for row in found:
        archived = reads.unpacked(row)
        yield Step("restore_job", archived.job)
        yield Step("restore_done", archived.job)
        yield Step("restore_attempt", rows=archived.attempts)
    if found:
        yield Step("forget_archived", {"ids": dialect.ids([row[0] for row in found])})
    return len(found)
