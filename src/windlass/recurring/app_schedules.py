"""The part of an application that declares, stores and steers schedules."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Unpack

from windlass.domain.options import JobOptions, JobOptionsDict
from windlass.domain.schedule_plan import CATCH_UP, Misfire, Overlap
from windlass.recurring.declared_schedules import DeclaredSchedules
from windlass.recurring.schedule_options import ScheduleTimes, Times, check_options, check_schedule_key
from windlass.recurring.schedules import Schedules, store
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.submission.call import Call
from windlass.submission.job_function import AsyncJobFunction, JobDecorator, JobFunction, declare
from windlass.submission.registry import Registry
from windlass.submission.submitter import SubmissionParts, Submitter


class AppSchedules:
    """Recurring work of an application."""

    registry: Registry
    _submitter: Submitter
    _submission_parts: SubmissionParts
    _declared: DeclaredSchedules

    def recurring(
        self,
        cron: Times,
        *,
        zone: str = "UTC",
        key: str | None = None,
        misfire: Misfire = Misfire.CATCH_UP,
        overlap: Overlap = Overlap.ALLOW,
        jitter: float | timedelta = 0,
        start: datetime | None = None,
        end: datetime | None = None,
        catch_up: int = CATCH_UP,
        **options: Unpack[JobOptionsDict],
    ) -> JobDecorator:
        """Make a function or method a job that runs at the times of a cron expression or an interval.

        ```python
        @app.recurring("0 2 * * *", zone="Europe/Berlin", misfire=Misfire.FIRE_ONCE, max_retries=5)
        def clean_up() -> None: ...
        ```

        It is stored when a worker starts, and changed in place by the next version of the code: a pause stays. The key
        is the job's name unless `key` gives another one. May be written above `@app.job`; other options are those of
        jobs.
        """
        times = ScheduleTimes.make(cron, zone, misfire, overlap, jitter, start, end, catch_up)
        checked = JobOptions.make(**options)
        check_options(checked)
        name = None if key is None else check_schedule_key(key)

        def decorate(function: Any) -> Any:
            is_job = isinstance(function, JobFunction | AsyncJobFunction)
            job = function if is_job else declare(function, self.registry, self._submitter, checked)
            self._declared.add(name, job, times, checked)
            return job

        return decorate

    def schedule(
        self,
        key: str,
        cron: Times,
        call: Call[Any],
        *,
        zone: str = "UTC",
        misfire: Misfire = Misfire.CATCH_UP,
        overlap: Overlap = Overlap.ALLOW,
        jitter: float | timedelta = 0,
        start: datetime | None = None,
        end: datetime | None = None,
        catch_up: int = CATCH_UP,
    ) -> None:
        """Store a schedule: `app.schedule("hourly-sync", every(hours=1), sync.bind("eu"))`.

        It is kept until it is removed (`app.schedules.remove`). Calling this again with the same key changes it in
        place, and does nothing if it is the same. While the schema is missing nothing is stored, with a warning.
        """
        return drive(self._schedule(key, call, cron, zone, misfire, overlap, jitter, start, end, catch_up))

    async def aschedule(
        self,
        key: str,
        cron: Times,
        call: Call[Any],
        *,
        zone: str = "UTC",
        misfire: Misfire = Misfire.CATCH_UP,
        overlap: Overlap = Overlap.ALLOW,
        jitter: float | timedelta = 0,
        start: datetime | None = None,
        end: datetime | None = None,
        catch_up: int = CATCH_UP,
    ) -> None:
        """Async twin of `schedule`."""
        return await adrive(self._schedule(key, call, cron, zone, misfire, overlap, jitter, start, end, catch_up))

    def _schedule(self, key: object, call: object, *times: Any) -> Verb[None]:
        yield from store(self.schedules, key, call, ScheduleTimes.make(*times), self._submitter.row)

    @property
    def schedules(self) -> Schedules:
        """The schedules: `list`, `pause`, `resume`, `trigger`, `remove`."""
        return Schedules(self._submission_parts, self.registry, self._declared)
