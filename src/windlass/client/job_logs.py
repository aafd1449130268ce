"""Reading what jobs said of themselves: the log lines kept with them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from windlass.client.access import Access
from windlass.client.authorization import Authorization
from windlass.client.filters import checked_limit
from windlass.client.views import line_of
from windlass.domain.identity import parse_job_id
from windlass.domain.progress import LogLine, place_of
from windlass.errors import JobNotFoundError
from windlass.stores.plans import progress_reports
from windlass.stores.plans.progress_reports import LineRow


class Reporting:
    """The part of an application that tells what jobs logged. How far they are is in `Job.progress`."""

    _access: Access
    _authorization: Authorization

    def log_lines(self, job_id: UUID | str, after: LogLine | str | None = None, limit: int = 1000) -> list[LogLine]:
        """Log lines kept with a job, oldest attempt first; `JobNotFoundError` if there is no such job.

        To follow a job, ask again with the last line you have (or its `position`) as `after`:

        ```python
        lines = app.log_lines(job_id)
        more = app.log_lines(job_id, after=lines[-1] if lines else None)
        ```
        """
        key = parse_job_id(job_id)
        self._authorization.check("log_lines", key)
        return _lines(key, self._access.read(progress_reports.lines, key, place_of(after), checked_limit(limit)))

    async def alog_lines(
        self, job_id: UUID | str, after: LogLine | str | None = None, limit: int = 1000
    ) -> list[LogLine]:
        """Async twin of `log_lines`."""
        key = parse_job_id(job_id)
        await self._authorization.acheck("log_lines", key)
        return _lines(key, await self._access.aread(progress_reports.lines, key, place_of(after), checked_limit(limit)))


def _lines(job_id: str, rows: Sequence[LineRow] | None) -> list[LogLine]:
    if rows is None:
        raise JobNotFoundError(UUID(job_id))
    return [line_of(row) for row in rows]
