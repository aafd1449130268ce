"""Plans for reports of running jobs: progress and log lines, many at once."""

from __future__ import annotations

from typing import NamedTuple

from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step


class ProgressRow(NamedTuple):
    """The progress of a claimed job, as the fragment `progress_rows` reads it."""

    job_id: str
    fence: int
    done: float
    total: float | None
    message: str
    at: int


class LineRow(NamedTuple):
    """A log line, as the fragment `line_rows` reads it."""

    job_id: str
    fence: int
    number: int
    attempt: int
    at: int
    level: int
    logger: str
    text: str


class ReportBatch(NamedTuple):
    """Reports that are written together: at most one progress per job."""

    progress: list[ProgressRow]
    lines: list[LineRow]


def save(dialect: Dialect, batch: ReportBatch) -> Plan[None]:
    """Write progress of jobs that are still held by their fence, and lines of existing jobs. Idempotent."""
    del dialect
    alone = not (batch.progress and batch.lines)
    if batch.progress:
        yield Step("save_progress", {"rows": json_text(sorted(batch.progress))}, alone=alone)
    if batch.lines:
        yield Step("save_lines", {"rows": json_text(batch.lines)}, alone=alone)


def lines(dialect: Dialect, job_id: str, after: tuple[int, int], limit: int) -> Plan[list[LineRow] | None]:
    """Return the next lines of a job after a position (fence, number); None when there is no such job."""
    fence, number = after
    rows = yield Step("log_lines", {"id": job_id, "fence": fence, "number": number, "most": limit})
    if not rows and (yield Step("job_exists", {"id": job_id})) is None:
        archived = yield Step("archived_jobs", {"ids": dialect.ids([job_id])})
        return [] if archived else None
    return [LineRow(job_id, *row) for row in rows]
