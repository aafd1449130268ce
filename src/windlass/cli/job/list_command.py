"""`windlass job list`: a page of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.pages import show_page
from windlass.cli.parameters import cursor_option, filter_options, json_option, limit_option, on_application
from windlass.cli.tables import STATUS_STYLES, Cell, Column, moment_cell, pipe_epilog
from windlass.client.filters import JobFilters
from windlass.domain.job import Job
from windlass.domain.states import JobStatus

COLUMNS: Final = (
    Column("id", lead=True),
    Column("status", lead=True),
    Column("target", lead=True),
    Column("queue"),
    Column("priority"),
    Column("attempts", right=True),
    Column("enqueued", right=True),
    Column("error", rest=True),
)


@click.command(name="list", epilog=pipe_epilog("job", COLUMNS))
@on_application
@click.option(
    "--status",
    "-s",
    type=click.Choice([status.value for status in JobStatus], case_sensitive=False),
    show_envvar=True,
    help="In this state.",
)
@filter_options
@limit_option(50, "Jobs in a page.")
@cursor_option
@json_option("job list")
def command(
    app: Windlass, status: str | None, filters: JobFilters, limit: int, cursor: str | None, as_json: bool
) -> None:
    """List jobs that fit every filter given, newest first.

    Where few of very many jobs fit, a page may hold fewer than --limit, even none, and still have a next one.

    \b
        windlass job list --status failed --since 2h
        windlass job list --queue billing --tag import --json
    """
    page = app.find(status=status, cursor=cursor, limit=limit, **filters)
    show_page(app, page, COLUMNS, row, "jobs", cursor, as_json=as_json)


def row(job: Job, now: datetime) -> list[Cell]:
    """Return a job as a line of the table."""
    return [
        Cell(str(job.id)),
        Cell(job.status.value, STATUS_STYLES[job.status]),
        Cell(job.target),
        Cell(job.queue),
        Cell(phrases.priority(job.priority)),
        Cell(phrases.attempts(job)),
        moment_cell(job.created_at, now),
        Cell(phrases.first_line(job.error), "red" if job.status is JobStatus.FAILED else "yellow"),
    ]
