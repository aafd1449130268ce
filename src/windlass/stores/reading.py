"""Plans that only read: one job, its history, and how far many jobs are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from windlass.domain.job import Outcome
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step


class StoredJob(NamedTuple):
    """Everything stored of one job, as `get_job` reads it, and the last attempt that counted."""

    row: Sequence[Any]
    last_attempt: Sequence[Any] | None


class FailedJob(NamedTuple):
    """A dead letter, as far as events tell of it."""

    target: str
    queue: str
    correlation_id: str | None
    attempts: int
    error: str
    error_class: str
    reason: str
    finished_at: int


def get(dialect: Dialect, job_id: str) -> Plan[StoredJob | None]:
    """One job, wherever it lives; None when there is none."""
    row = yield Step("get_job", {"id": job_id})
    if row is None:
        return None
    return StoredJob(row, (yield Step("last_attempt", {"id": job_id})))


def history(dialect: Dialect, job_id: str) -> Plan[list[Sequence[Any]] | None]:
    """Every attempt of a job, oldest first; None when there is no such job."""
    if (yield Step("job_exists", {"id": job_id})) is None:
        return None
    rows: list[Sequence[Any]] = yield Step("history", {"id": job_id})
    return rows


def outcomes(dialect: Dialect, ids: Sequence[str]) -> Plan[list[Outcome]]:
    """How far these jobs are; unknown ids are left out."""
    found = yield from dialect.outcomes(ids)
    return found


def failed(dialect: Dialect, job_id: str) -> Plan[FailedJob | None]:
    """A job that has failed for good; None when it has not, or no more."""
    row = yield Step("failed_job", {"id": job_id}, alone=True)
    return None if row is None else FailedJob._make(row)
