"""Plans for what running jobs say of themselves: progress and log lines, many at once."""

from __future__ import annotations

from typing import NamedTuple

from windlass.stores.dialect import Dialect, json_text
from windlass.stores.plan import Plan, Step


class ProgressRow(NamedTuple):
    """How far a claimed job is, as the fragment `progress_rows` reads it."""

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


class Batch(NamedTuple):
    """What is written together: of one job at most one progress."""

    progress: list[ProgressRow]
    lines: list[LineRow]


def save(dialect: Dialect, batch: Batch) -> Plan[None]:
    """Write progress of jobs that are still held by their fence, and lines of jobs that exist. Once is enough."""
    del dialect
    alone = not (batch.progress and batch.lines)
    if batch.progress:
        yield Step("save_progress", {"rows": json_text(sorted(batch.progress))}, alone=alone)
    if batch.lines:
        yield Step("save_lines", {"rows": json_text(batch.lines)}, alone=alone)


def lines(dialect: Dialect, job_id: str, after: tuple[int, int], limit: int) -> Plan[list[LineRow] | None]:
    """The next lines of a job behind a place (fence, number); None when there is no such job."""
    fence, number = after
    rows = yield Step("log_lines", {"id": job_id, "fence": fence, "number": number, "most": limit})
    if not rows and (yield Step("job_exists", {"id": job_id})) is None:
        archived = yield Step("archived_jobs", {"ids": dialect.ids([job_id])})
        return [] if archived else None
    return [LineRow(job_id, *row) for row in rows]
