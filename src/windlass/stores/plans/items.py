"""Plans for items of executions, and for parts: ranges of items that one job works off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from windlass.domain.execution_items import ItemRow, ItemWrite, PartKey
from windlass.domain.identity import new_job_ids
from windlass.domain.job import NewJob
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step


class Release(NamedTuple):
    """Makes jobs of parts that wait, up to a number that have one at a time."""

    execution_id: str
    stage: int
    segment: int
    width: int
    template: NewJob
    """A job of a part, but for its id and arguments."""


class StoredPart(NamedTuple):
    """A part as its job reads it."""

    execution_id: str
    stage: int
    segment: int
    lo: str
    hi: str
    trying: str | None
    job_id: str | None


class DoneItem(NamedTuple):
    """An item that has passed all steps of its stage."""

    path: str
    type: int
    value: str | None


def release(dialect: Dialect, releases: Sequence[Release]) -> Plan[frozenset[tuple[str, int]]]:
    """Make jobs of parts that wait, in their order; return the levels that have new work. Main jobs are locked."""
    jobs: list[NewJob] = []
    given: list[tuple[Any, ...]] = []
    for one in dict.fromkeys(releases):
        where = {"id": one.execution_id, "stage": one.stage, "segment": one.segment}
        live = (yield Step("live_parts", where))[0]
        room = one.width - live
        if room <= 0:
            continue
        waiting = yield Step("waiting_parts", where, literals={"window": room})
        for job_id, (lo,) in zip(new_job_ids(len(waiting)), waiting, strict=True):
            key = PartKey(one.execution_id, one.stage, one.segment, lo)
            jobs.append(one.template._replace(id=job_id, args=json_text([list(key), {}])))
            given.append((*key, job_id))
    if not jobs:
        return frozenset()
    yield Step("give_jobs", {"rows": json_text(given)})
    yield from dialect.insert_jobs(jobs, alone=False, notification=None)
    return frozenset((job.queue, job.priority) for job in jobs)


def write(dialect: Dialect, items: Sequence[ItemWrite], *, final: bool = False) -> Plan[None]:
    """Write items, each guarded by the version that was read. `final`: nothing follows in this transaction."""
    yield Step("write_items", dialect.bulk("item_writes", items), final=final)


def parts_of_jobs(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, StoredPart]]:
    """Return the parts of jobs, many at once."""
    rows = yield Step("part_of_job", {"ids": dialect.ids(ids)}, autocommit=True)
    return {str(part.job_id): part for part in (StoredPart(*row) for row in rows)}


def parts_of_ended(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, StoredPart]]:
    """Return the parts of jobs that this transaction has ended."""
    rows = yield Step("part_of_job", {"ids": dialect.ids(ids)})
    return {str(part.job_id): part for part in (StoredPart(*row) for row in rows)}


def to_run(dialect: Dialect, part: tuple[str, int, str, str], most: int, ahead_us: int = 0) -> Plan[list[ItemRow]]:
    """Return the next items of a range that have not ended: of an execution's stage, from a path to another.

    Those that wait outside are left out, but where their deadline has passed, or does within `ahead_us`.
    """
    del dialect
    execution, stage, lo, hi = part
    params = {"id": execution, "stage": stage, "lo": lo, "hi": hi, "ahead_us": ahead_us}
    rows = yield Step("items_to_run", params, autocommit=True, literals={"window": most})
    return [ItemRow(*row) for row in rows]


def next_due(dialect: Dialect, part: tuple[str, int, str, str], *, ordered: bool = False) -> Plan[int | None]:
    """Return the microseconds until the next item of a range is due; None: all of them have ended.

    `ordered`: the first one that has not ended holds up those behind it.
    """
    del dialect
    execution, stage, lo, hi = part
    params = {"id": execution, "stage": stage, "lo": lo, "hi": hi}
    row = yield Step("first_item_due" if ordered else "next_item_due", params, autocommit=True)
    due, now = row or (None, 0)
    return None if due is None else max(0, due - now)


def done(dialect: Dialect, execution: str, stage: int, after: str, most: int) -> Plan[list[DoneItem]]:
    """Return the next items of a stage that have passed it, in their order."""
    del dialect
    params = {"id": execution, "stage": stage, "after": after}
    rows = yield Step("items_done", params, autocommit=True, literals={"window": most})
    return [DoneItem(*row) for row in rows]


def to_cut(dialect: Dialect, execution: str, stage: int, after: str, cursor: int, most: int) -> Plan[list[str]]:
    """Return the paths of the next items that have passed a segment."""
    del dialect
    params = {"id": execution, "stage": stage, "after": after, "cursor": cursor}
    rows = yield Step("items_to_cut", params, autocommit=True, literals={"window": most})
    return [path for (path,) in rows]


def item(dialect: Dialect, execution: str, stage: int, path: str) -> Plan[ItemRow | None]:
    """Return one item."""
    del dialect
    row = yield Step("item", {"id": execution, "stage": stage, "path": path}, autocommit=True)
    return None if row is None else ItemRow(*row)


def counts(dialect: Dialect, execution: str, stage: int) -> Plan[dict[int, int]]:
    """Return how many items of a stage are in each state."""
    del dialect
    return dict((yield Step("count_items", {"id": execution, "stage": stage}, autocommit=True)))


def any_live_part(dialect: Dialect, execution: str) -> Plan[bool]:
    """Return whether a part of an execution has a job."""
    del dialect
    return (yield Step("any_live_part", {"id": execution}, autocommit=True)) is not None


def live_jobs(dialect: Dialect, executions: Sequence[str]) -> Plan[list[str]]:
    """Return the jobs of parts of executions."""
    rows = yield Step("jobs_of_parts", {"ids": dialect.ids(executions)})
    return [job for (job,) in rows]


def any_part(dialect: Dialect, execution: str) -> Plan[bool]:
    """Return whether an execution has parts that have not ended."""
    del dialect
    return (yield Step("any_part", {"id": execution}, autocommit=True)) is not None


def end(dialect: Dialect, jobs: Sequence[str]) -> Plan[None]:
    """Delete parts all of whose items have ended."""
    yield Step("end_parts", {"ids": dialect.ids(jobs)})


def strand(dialect: Dialect, jobs: Sequence[str]) -> Plan[None]:
    """Take parts from jobs that have ended without them, so that they can get others."""
    yield Step("strand_parts", {"ids": dialect.ids(jobs)})


def detach(dialect: Dialect, execution: str) -> Plan[None]:
    """Take the parts of an execution that has ended from their jobs."""
    del dialect
    yield Step("detach_parts", {"id": execution})


def wake(dialect: Dialect, jobs: Sequence[str]) -> Plan[frozenset[tuple[str, int]]]:
    """Make jobs of parts due that wait to be resumed, and whose execution is not paused; return their levels."""
    rows = yield Step("wake_parts", {"ids": dialect.ids(jobs)})
    return frozenset((queue, priority) for queue, priority in rows)
