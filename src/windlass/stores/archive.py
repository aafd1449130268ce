"""Plans for the archive: ended jobs in one row each, out of the way of everything that works."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.domain.states import TERMINAL, JobStatus
from windlass.stores import reading
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step


def move(dialect: Dialect, ids: Sequence[str]) -> Plan[int]:
    """Move jobs that have ended, with their history, into the archive; answers how many. Others are left alone."""
    found = [job for job in (yield from reading.get_many(dialect, ids)) if JobStatus(job.row[3]) in TERMINAL]
    moved = 0
    for job in found:
        job_id, target, queue, status = job.row[:4]
        history = yield Step("history", {"id": job_id})
        row = {"id": job_id, "queue": queue, "target": target, "status": status, "job": reading.packed(job, history)}
        moved += yield Step("archive_job", {**row, "created_at": job.row[14]})
    chosen = {"ids": dialect.ids([job.row[0] for job in found])}
    for step in ("forget_ended", "forget_jobs", "forget_attempts", "forget_progress", "forget_lines"):
        yield Step(step, chosen)
    return moved
