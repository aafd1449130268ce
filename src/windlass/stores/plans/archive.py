"""Plans for the archive: ended jobs in one row each, outside the working tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from windlass.domain.identity import LAST_ID, lowest_job_id
from windlass.domain.signal import WAIT_IN_TEXT
from windlass.runtime.failpoints import reached
from windlass.stores.columns import ATTEMPT, FLOW, SIGNAL_WAIT, STORED_JOB
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import flow_retention, reads

WINDOW = 1024
"""Number of ended jobs that one statement checks."""
MOST_LOOKED_AT = 20 * WINDOW
SKEW_US = 3_600_000_000
"""Largest difference between the clock of a process that creates ids and the store's."""

_FORGET = ("forget_ended", "forget_jobs", "forget_attempts", "forget_progress", "forget_lines")


class OldJobs(NamedTuple):
    """Jobs that are old enough, and where to continue; None when all have been checked."""

    ids: list[str]
    next_after: str | None


class Moved(NamedTuple):
    """Number of jobs that were moved, and their size in bytes."""

    jobs: int
    size: int


def old_jobs(dialect: Dialect, age_us: int, after: str, limit: int, *, ids_have_times: bool = True) -> Plan[OldJobs]:
    """Return the next jobs in the order of ids that ended so long ago; only reads.

    Jobs of a flow are left out until the whole flow has ended so long ago. A job cannot have ended before its id was
    created, so nothing younger is checked. `ids_have_times`: False with a test's own clock.
    """
    top = LAST_ID
    if ids_have_times:
        (now,) = yield Step("store_time")
        top = lowest_job_id(now - age_us + SKEW_US)
    old: list[str] = []
    flows: dict[str, bool] = {}
    looked_at = 0
    while looked_at < MOST_LOOKED_AT:
        rows = yield Step("oldest_ended", {"after": after, "age_us": age_us}, literals={"window": WINDOW})
        new = {flow for *_, flow in rows if flow is not None} - flows.keys()
        kept = yield from flow_retention.not_archivable(dialect, new, age_us)
        flows |= {flow: flow not in kept for flow in new}
        for job, is_old, flow in rows:
            if job >= top:
                return OldJobs(old, None)
            after = job
            if is_old and (flow is None or flows[flow]):
                old.append(job)
                if len(old) == limit:
                    return OldJobs(old, after)
        if len(rows) < WINDOW:
            return OldJobs(old, None)
        looked_at += len(rows)
    return OldJobs(old, after)


def move(dialect: Dialect, ids: Sequence[str], age_us: int = 0) -> Plan[Moved]:
    """Move jobs that ended so long ago, with their history, into the archive; skip others.

    Those of a flow are skipped until all of it ended so long ago. The number of statements is the same for one job and
    for hundreds.
    """
    locked = yield Step("lock_archivable", {"ids": dialect.ids(ids), "age_us": age_us})
    positions = {job: reads.named(FLOW, row) for job, _, *row in locked}
    flow_of = {job: flow for job, flow, *_ in locked}
    flows = yield from flow_retention.lock_archivable(dialect, flow_of.values(), age_us)
    movable = [job for job, flow in flow_of.items() if flow is None or flow in flows]
    if not movable:
        return Moved(0, 0)
    rows, waits = yield from _packed(dialect, movable, positions)
    yield Step("archive_jobs", {"rows": json_text(rows)})
    reached("archive.copied")
    for step in _FORGET:
        yield Step(step, {"ids": dialect.ids(movable)})
    if waits:
        yield Step("forget_waits", {"ids": dialect.ids(sorted(waits))})
    if flows:
        yield from flow_retention.forget(dialect, movable, flows)
    return Moved(len(rows), sum(len(row[-1]) for row in rows))


def _packed(
    dialect: Dialect, ids: Sequence[str], positions: Mapping[str, reads.Record]
) -> Plan[tuple[list[tuple[Any, ...]], set[str]]]:
    """Return jobs as rows of the archive, and those of them that awaited a signal."""
    chosen = {"ids": dialect.ids(ids)}
    jobs = [reads.named(STORED_JOB, row) for row in (yield Step("get_jobs", chosen))]
    history = [reads.named(ATTEMPT, row) for row in (yield Step("histories", chosen))]
    attempts = {job: list(rows) for job, rows in groupby(history, itemgetter("job_id"))}
    groups = {positions[job]["group_id"] for job in ids} - {None}
    totals: dict[str, int] = {}
    if groups:
        totals = dict((yield Step("group_totals", {"ids": dialect.ids(sorted(groups))})))
    waits = yield from _waits(dialect, jobs)
    rows = [
        reads.packed(
            reads.Archived(
                job,
                attempts.get(job["id"], []),
                position if position["flow_id"] is not None else None,
                totals.get(position["group_id"]),
                waits.get(job["id"]),
            )
        )
        for job in jobs
        for position in (positions[job["id"]],)
    ]
    return rows, set(waits)


def _waits(dialect: Dialect, jobs: Sequence[reads.Record]) -> Plan[dict[str, reads.Record]]:
    """Return what jobs awaited; reads only jobs whose options may contain a wait."""
    asked = [job["id"] for job in jobs if isinstance(job["options"], str) and WAIT_IN_TEXT in job["options"]]
    if not asked:
        return {}
    rows = yield Step("waits_of_jobs", {"ids": dialect.ids(asked)})
    return {wait["job_id"]: wait for wait in (reads.named(SIGNAL_WAIT, row) for row in rows)}


def bring_back(dialect: Dialect, ids: Sequence[str]) -> Plan[list[reads.Archived]]:
    """Move archived dead letters back to the working tables; return them. Other jobs are skipped.

    Those of a flow come back alone; `flow_returns` moves back the rest of it.
    """
    found = [reads.unpacked(row) for row in (yield Step("lock_archived", {"ids": dialect.ids(ids)}))]
    yield from restore(dialect, found)
    return found


def restore(dialect: Dialect, found: Sequence[reads.Archived]) -> Plan[None]:
    """Move jobs from the archive, where they are locked, to the working tables."""
    if not found:
        return
    for archived in found:
        yield Step("restore_job", archived.job)
        yield Step("restore_done", archived.job)
        yield Step("restore_attempt", rows=archived.attempts)
    positions = [tuple(one.position[name] for name in FLOW) for one in found if one.position is not None]
    if positions:
        yield Step("insert_flow", {"rows": json_text(positions)})
    waits = [tuple(one.wait[name] for name in SIGNAL_WAIT) for one in found if one.wait is not None]
    if waits:
        yield Step("insert_waits", {"rows": json_text(waits)})
    yield Step("forget_archived", {"ids": dialect.ids([archived.job["id"] for archived in found])})
