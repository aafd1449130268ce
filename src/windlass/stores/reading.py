"""Plans that only read: one job, its history, and how far many jobs are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.domain.job import EndedJob, Outcome
from windlass.domain.states import JobStatus
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step


class StoredJob(NamedTuple):
    """Everything stored of one job, as `get_jobs` reads it, and the last attempt that counted."""

    row: Sequence[Any]
    last_attempt: Sequence[Any] | None


class FailedJob(NamedTuple):
    """A dead letter, as far as events tell of it."""

    job_id: str
    target: str
    queue: str
    correlation_id: str | None
    attempts: int
    error: str
    error_class: str
    reason: str
    finished_at: int
    node: str | None
    raised: int | None
    """1 if it raised an alert."""


def get(dialect: Dialect, job_id: str) -> Plan[StoredJob | None]:
    """One job, wherever it lives; None when there is none."""
    found = yield from get_many(dialect, [job_id])
    return found[0] if found else None


def get_many(dialect: Dialect, ids: Sequence[str]) -> Plan[list[StoredJob]]:
    """Jobs, wherever they live, in the order of these ids; unknown ones are left out."""
    chosen = {"ids": dialect.ids(ids)}
    rows = yield Step("get_jobs", chosen)
    last = {job: attempt for job, *attempt in (yield Step("counted_attempts", chosen))}
    found = {row[0]: StoredJob(row, last.get(row[0])) for row in rows}
    if len(found) < len(ids):
        archived = yield Step("archived_jobs", {"ids": dialect.ids([job for job in ids if job not in found])})
        found |= {job: unpacked(text).job for job, text in archived}
    return [found[job] for job in ids if job in found]


def history(dialect: Dialect, job_id: str) -> Plan[list[Sequence[Any]] | None]:
    """Every attempt of a job, oldest first; None when there is no such job."""
    if (yield Step("job_exists", {"id": job_id})) is None:
        archived = yield Step("archived_jobs", {"ids": dialect.ids([job_id])})
        return unpacked(archived[0][1]).history if archived else None
    rows: list[Sequence[Any]] = yield Step("history", {"id": job_id})
    return rows


class Archived(NamedTuple):
    """What the archive keeps of a job."""

    job: StoredJob
    history: list[Sequence[Any]]


def packed(job: StoredJob, history: Sequence[Sequence[Any]]) -> str:
    """A job and its attempts as one text, for the archive."""
    return json_text([job.row, job.last_attempt, history])


def unpacked(text: str) -> Archived:
    """A job of the archive, as it was."""
    row, last, history = msgspec.json.decode(text)
    return Archived(StoredJob(row, last), history)


def outcomes(dialect: Dialect, ids: Sequence[str]) -> Plan[list[Outcome]]:
    """How far these jobs are; unknown ids are left out."""
    found: list[Outcome] = yield from dialect.outcomes(ids)
    if len(found) < len(ids):
        missing = set(ids) - {outcome.job_id for outcome in found}
        archived = yield Step("archived_jobs", {"ids": dialect.ids(sorted(missing))}, alone=True)
        found += [_outcome_of(unpacked(text).job.row) for _, text in archived]
    return found


def _outcome_of(row: Sequence[Any]) -> Outcome:
    return Outcome(row[0], JobStatus(row[3]), row[1], *row[22:26])


def given_up(dialect: Dialect, ids: Sequence[str]) -> Plan[list[tuple[str, EndedJob]]]:
    """Jobs that have just failed outside of any attempt, with the text of their options; those without any left out."""
    rows = yield Step("given_up_jobs", {"ids": dialect.ids(ids)})
    return [(options, EndedJob(*columns)._replace(status=JobStatus.FAILED)) for options, *columns in rows]


def failed(dialect: Dialect, ids: Sequence[str]) -> Plan[list[FailedJob]]:
    """Jobs that have failed for good, in the order of these ids; others are left out."""
    rows = yield Step("failed_jobs", {"ids": dialect.ids(ids)})
    found = {row[0]: FailedJob._make(row) for row in rows}
    return [found[job] for job in ids if job in found]
