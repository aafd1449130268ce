"""Plans that only read: one job, its history, and how far many jobs are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.domain.job import EndedJob, Outcome
from windlass.domain.states import JobStatus
from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step

JOB_COLUMNS = (
    *("id", "target", "queue", "status", "priority", "args", "options", "tags", "params", "correlation_id"),
    *("idempotency_key", "business_key", "parent_id", "created_at", "fence", "attempts", "crash_count"),
    *("node", "due", "picked_at", "paused_from", "result", "error", "error_class", "reason", "superseded_by"),
    *("started_at", "finished_at", "progress_done", "progress_total", "progress_message", "progress_at"),
    "lane",
)
"""What `get_jobs` reads, in its order. The archive keeps such rows for ever: names are only added, at the end."""
_ATTEMPTS, _FINISHED_AT = (JOB_COLUMNS.index(name) for name in ("attempts", "finished_at"))
ATTEMPT_COLUMNS = (
    *("fence", "number", "node", "picked_at", "started_at", "ended_at", "wait_us", "outcome", "error_class", "error"),
    "traceback",
)
"""What the archive keeps of an attempt; all but the fence is what `history` reads."""
LAST_ATTEMPT = ("error", "error_class", "wait_us", "started_at", "ended_at")
"""What `counted_attempts` reads of the last one."""
COUNTED = frozenset({"succeeded", "retried", "failed"})
"""Outcomes of attempts that counted, as in `counted_attempts`."""


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
    found: dict[str, StoredJob] = {}
    missing = list(ids)
    for _ in range(2):  # somebody may have brought a job back from the archive between the looks at the two places
        if missing:
            found |= yield from _look(dialect, missing)
            missing = [job for job in missing if job not in found]
    return [found[job] for job in ids if job in found]


def _look(dialect: Dialect, ids: Sequence[str]) -> Plan[dict[str, StoredJob]]:
    """In both places. A job may be moved to the archive between two statements: then its history is missing here."""
    chosen = {"ids": dialect.ids(ids)}
    rows = yield Step("get_jobs", chosen)
    last = {job: attempt for job, *attempt in (yield Step("counted_attempts", chosen))}
    found = {row[0]: StoredJob(row, last.get(row[0])) for row in rows}
    elsewhere = [job for job in ids if job not in found or _lacks_history(found[job])]
    if elsewhere:
        archived = yield Step("archived_jobs", {"ids": dialect.ids(elsewhere)})
        found |= {job: unpacked(text).job for job, text in archived}
    return found


def _lacks_history(job: StoredJob) -> bool:
    return job.last_attempt is None and job.row[_FINISHED_AT] is not None and job.row[_ATTEMPTS] > 0


def history(dialect: Dialect, job_id: str) -> Plan[list[Sequence[Any]] | None]:
    """Every attempt of a job, oldest first; None when there is no such job."""
    rows: list[Sequence[Any]] = yield Step("history", {"id": job_id})
    if not rows:
        archived = yield Step("archived_jobs", {"ids": dialect.ids([job_id])})
        if archived:
            return unpacked(archived[0][1]).history
        if (yield Step("job_exists", {"id": job_id})) is None:
            return None
    return rows


class Archived(NamedTuple):
    """What the archive keeps of a job."""

    job: StoredJob
    attempts: list[dict[str, Any]]
    """By the names of `ATTEMPT_COLUMNS`."""

    @property
    def history(self) -> list[Sequence[Any]]:
        """Its attempts as `history` reads them."""
        return [[attempt[name] for name in ATTEMPT_COLUMNS[1:]] for attempt in self.attempts]


def named(row: Sequence[Any]) -> dict[str, Any]:
    """A row of `get_jobs` by the names of its columns."""
    return dict(zip(JOB_COLUMNS, row, strict=True))


def packed(row: Sequence[Any], attempts: Sequence[Sequence[Any]]) -> str:
    """A job and its attempts as one text, for the archive."""
    return json_text({"job": row, "attempts": attempts})


def unpacked(text: str) -> Archived:
    """A job of the archive, as it was; columns that came later are empty."""
    kept = msgspec.json.decode(text)
    row = _padded(kept["job"], len(JOB_COLUMNS))
    attempts = [
        dict(zip(ATTEMPT_COLUMNS, _padded(attempt, len(ATTEMPT_COLUMNS)), strict=True)) for attempt in kept["attempts"]
    ]
    counted = [attempt for attempt in attempts if attempt["outcome"] in COUNTED]
    last = [counted[-1][name] for name in LAST_ATTEMPT] if counted else None
    return Archived(StoredJob(row, last), attempts)


def _padded(row: list[Any], length: int) -> list[Any]:
    return row + [None] * (length - len(row))


def outcomes(dialect: Dialect, ids: Sequence[str]) -> Plan[list[Outcome]]:
    """How far these jobs are; unknown ids are left out."""
    found: list[Outcome] = yield from dialect.outcomes(ids)
    if len(found) < len(ids):
        missing = set(ids) - {outcome.job_id for outcome in found}
        archived = yield Step("archived_jobs", {"ids": dialect.ids(sorted(missing))}, autocommit=True)
        found += [_outcome_of(unpacked(text).job.row) for _, text in archived]
    return found


def _outcome_of(row: Sequence[Any]) -> Outcome:
    return Outcome(row[0], JobStatus(row[3]), row[1], *row[21:25])


def given_up(dialect: Dialect, ids: Sequence[str]) -> Plan[list[tuple[str, EndedJob]]]:
    """Jobs that have just failed outside of any attempt, with the text of their options; those without any left out."""
    rows = yield Step("given_up_jobs", {"ids": dialect.ids(ids)})
    return [(options, EndedJob(*columns)._replace(status=JobStatus.FAILED)) for options, *columns in rows]


def failed(dialect: Dialect, ids: Sequence[str]) -> Plan[list[FailedJob]]:
    """Jobs that have failed for good, in the order of these ids; others are left out."""
    rows = yield Step("failed_jobs", {"ids": dialect.ids(ids)})
    found = {row[0]: FailedJob._make(row) for row in rows}
    return [found[job] for job in ids if job in found]
