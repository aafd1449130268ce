"""Plans that only read: one job, its history, and the outcomes of many jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.domain.ended import Ended
from windlass.domain.job import Outcome
from windlass.domain.states import JobStatus, Move
from windlass.domain.transition import Failure, Times
from windlass.stores.columns import ARCHIVE, ATTEMPT, FLOW, LAST_ATTEMPT, SIGNAL_WAIT, STORED_JOB
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step

COUNTED = frozenset({"succeeded", "retried", "failed"})
"""Outcomes of attempts that counted, as in `counted_attempts`."""


Record = Mapping[str, Any]
"""A row by the names of its columns."""


class StoredJob(NamedTuple):
    """Everything stored of one job (`columns.STORED_JOB`), and of the last attempt that counted (`LAST_ATTEMPT`)."""

    job: Record
    last_attempt: Record | None


def get(dialect: Dialect, job_id: str) -> Plan[StoredJob | None]:
    """Return one job, wherever it is stored; None when there is none."""
    found = yield from get_many(dialect, [job_id])
    return found[0] if found else None


def get_many(dialect: Dialect, ids: Sequence[str]) -> Plan[list[StoredJob]]:
    """Return jobs, wherever they are stored, in the order of these ids; unknown ones are left out."""
    found: dict[str, StoredJob] = {}
    missing = list(ids)
    for _ in range(2):  # a job may have been moved back from the archive between the two reads
        if missing:
            found |= yield from _look(dialect, missing)
            missing = [job for job in missing if job not in found]
    return [found[job] for job in ids if job in found]


def _look(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, StoredJob]]:
    """Read live tables and archive. A job may be archived between two statements: then its history is missing here."""
    chosen = {"ids": dialect.ids(ids)}
    jobs = [named(STORED_JOB, row) for row in (yield Step("get_jobs", chosen))]
    last = {job: named(LAST_ATTEMPT, attempt) for job, *attempt in (yield Step("counted_attempts", chosen))}
    found = {job["id"]: StoredJob(job, last.get(job["id"])) for job in jobs}
    elsewhere = [job for job in ids if job not in found or _lacks_history(found[job])]
    if elsewhere:
        rows = yield Step("archived_jobs", {"ids": dialect.ids(elsewhere)})
        found |= {row[0]: unpacked(row).stored for row in rows}
    return found


def _lacks_history(stored: StoredJob) -> bool:
    job = stored.job
    return stored.last_attempt is None and job["finished_at"] is not None and job["attempts"] > 0


def history(dialect: Dialect, job_id: str) -> Plan[list[Record] | None]:
    """Return every attempt of a job, oldest first; None when there is no such job."""
    rows = yield Step("history", {"id": job_id})
    if not rows:
        archived = yield Step("archived_jobs", {"ids": dialect.ids([job_id])})
        if archived:
            return list(unpacked(archived[0]).attempts)
        if (yield Step("job_exists", {"id": job_id})) is None:
            return None
    return [named(ATTEMPT, row) for row in rows]


class Archived(NamedTuple):
    """What the archive stores of a job."""

    job: Record
    attempts: Sequence[Record]
    position: Record | None = None
    """Its row of `windlass_flow`."""
    group_total: int | None = None
    """Number of members of the group that it counted for."""
    wait: Record | None = None
    """Its row of `windlass_signal_wait`."""

    @property
    def stored(self) -> StoredJob:
        """The job as it is read from the tables of ended jobs."""
        counted = [attempt for attempt in self.attempts if attempt["outcome"] in COUNTED]
        return StoredJob(self.job, counted[-1] if counted else None)


def named(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    """Return a row by the names of its columns."""
    return dict(zip(columns, row, strict=True))


def packed(archived: Archived) -> tuple[Any, ...]:
    """Return a job, its attempts and its position in a flow as a row of the archive.

    NULLs, and what has a column there, are not in its text.
    """
    job, position = archived.job, archived.position
    text: dict[str, Any] = {
        "job": _without(ARCHIVE, job),
        "attempts": [_without((), attempt) for attempt in archived.attempts],
    }
    flow_id = None
    if position is not None:
        flow_id = position["flow_id"]
        text["flow"] = _without(("job_id", "flow_id"), {**position, "group_total": archived.group_total})
    if archived.wait is not None:
        text["wait"] = _without(("job_id",), archived.wait)
    columns = {**job, "flow_id": flow_id}
    return (*(columns[name] for name in ARCHIVE), json_text(text))


def _without(names: Sequence[str], record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None and name not in names}


def unpacked(row: Sequence[Any]) -> Archived:
    """Return a row of the archive as it was before; unknown columns are None."""
    kept = msgspec.json.decode(row[-1])
    job = dict.fromkeys(STORED_JOB) | kept["job"] | named(ARCHIVE, row[:-1])
    attempts = [dict.fromkeys(ATTEMPT) | attempt for attempt in kept["attempts"]]
    wait = dict.fromkeys(SIGNAL_WAIT) | {"job_id": job["id"]} | kept["wait"] if "wait" in kept else None
    if job["flow_id"] is None:
        return Archived(job, attempts, wait=wait)
    flow = kept["flow"]
    position = {name: flow.get(name) for name in FLOW} | {"job_id": job["id"], "flow_id": job["flow_id"]}
    return Archived(job, attempts, position, flow.get("group_total"), wait)


def outcomes(dialect: Dialect, ids: Sequence[str]) -> Plan[list[Outcome]]:
    """Return the status and outcome of these jobs; unknown ids are left out."""
    found: list[Outcome] = yield from dialect.outcomes(ids)
    if len(found) < len(ids):
        missing = set(ids) - {outcome.job_id for outcome in found}
        rows = yield Step("archived_jobs", {"ids": dialect.ids(sorted(missing))}, autocommit=True)
        found += [_outcome_of(unpacked(row).job) for row in rows]
    return found


def _outcome_of(job: Record) -> Outcome:
    return Outcome(
        job_id=job["id"],
        status=JobStatus(job["status"]),
        target=job["target"],
        result=job["result"],
        error=job["error"],
        error_class=job["error_class"],
        reason=job["reason"],
    )


def failed(
    dialect: Dialect, ids: Sequence[str], move: Move = Move.FAIL, left: JobStatus = JobStatus.RUNNING
) -> Plan[list[Ended]]:
    """Return jobs that failed for good outside of any attempt, in the order of these ids; others are left out."""
    rows = yield Step("failed_jobs", {"ids": dialect.ids(ids)})
    found = {row[0]: _failed(row, move, left) for row in rows}
    return [found[job] for job in ids if job in found]


def _failed(row: Sequence[Any], move: Move, left: JobStatus) -> Ended:
    job, target, queue, priority, correlation_id, attempts, error, error_class, reason, finished_at, node, in_flow = row
    return Ended(
        job_id=job,
        target=target,
        queue=queue,
        priority=priority,
        move=move,
        left=left,
        correlation_id=correlation_id,
        number=attempts + 1,
        attempts=attempts,
        reason=reason,
        failure=Failure(error, error_class),
        times=Times(None, finished_at, None),
        node=node,
        in_flow=bool(in_flow),
    )
