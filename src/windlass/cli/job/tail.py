"""`windlass job tail`: the log lines kept with a job and, with `--follow`, its progress until it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli.job.tail_views import JsonView, View, view
from windlass.cli.output import write_items
from windlass.cli.parameters import json_option, on_application
from windlass.cli.short_ids import full_id, job_id
from windlass.domain.job import Job
from windlass.domain.progress import LogLine
from windlass.domain.states import TERMINAL, JobStatus

AT_A_TIME: Final = 1000
INTERVAL: Final = 0.3
"""Seconds between two polls; the end of the job is noticed at once."""


@click.command(name="tail", epilog="Exit codes: 0, or 1 if the job ended other than SUCCEEDED, or does not exist.")
@on_application
@click.argument("job", metavar="ID", callback=job_id)
@click.option("--follow", "-f", is_flag=True, show_envvar=True, help="Continue until the job has ended.")
@json_option("job tail")
def command(app: Windlass, job: str, follow: bool, as_json: bool) -> None:
    """Show a job's log lines, its progress, and how it ends.

    Which lines are kept with a job is the setting jobs.keep_logs: those of JobContext.log, unless it says otherwise.
    With --follow, --json gives an object per line, as things happen.

    \b
        windlass job tail --follow 0198c0de-0000-7000-8000-000000000001
    """
    job = full_id(app, job)
    if as_json and not follow:
        found = app.get(job)
        write_items(list(_lines(app, job, None)))
    else:
        found = _show(app, job, JsonView() if as_json else view(), follow=follow)
    if found.status in TERMINAL and found.status is not JobStatus.SUCCEEDED:
        raise SystemExit(1)


def _show(app: Windlass, job_id: str, opened: AbstractContextManager[View], *, follow: bool) -> Job:
    """Show lines and states as they come; return the job as it was seen last."""
    last: LogLine | None = None
    handle = app.handle(job_id)
    with opened as shown:
        while True:
            job = app.get(job_id)  # first: a job's lines are stored before its end, so none is missed
            for line in _lines(app, job_id, last):
                shown.line(line)
                last = line
            if not follow:
                break
            shown.state(job)
            if job.status in TERMINAL:
                break
            with suppress(TimeoutError):
                handle.join(timeout=INTERVAL)
    shown.over(job)
    return job


def _lines(app: Windlass, job_id: str, after: LogLine | None) -> Iterator[LogLine]:
    while lines := app.log_lines(job_id, after, AT_A_TIME):
        yield from lines
        after = lines[-1]
        if len(lines) < AT_A_TIME:
            return
