"""`windlass execution list`: a page of executions."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Final

import click
from click.core import ParameterSource

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.output import note
from windlass.cli.pages import show_page
from windlass.cli.parameters import cursor_option, json_option, limit_option, on_application, tenant_option
from windlass.cli.tables import STATUS_STYLES, Cell, Column, moment_cell, pipe_epilog
from windlass.client.filters import Page
from windlass.domain.execution import DEAD, Execution, ExecutionStatus

COLUMNS: Final = (
    Column("id", lead=True),
    Column("status", lead=True),
    Column("pipeline", lead=True),
    Column("tenant"),
    Column("key"),
    Column("step"),
    Column("attempt", right=True),
    Column("rejected", right=True),
    Column("submitted", right=True),
    Column("error", rest=True),
)


@click.command(name="list", epilog=pipe_epilog("execution", COLUMNS))
@on_application
@tenant_option
@click.option("--pipeline", "-p", metavar="NAME", show_envvar=True, help="Of this pipeline, in all its versions.")
@click.option(
    "--status",
    "-s",
    type=click.Choice([status.value for status in ExecutionStatus], case_sensitive=False),
    show_envvar=True,
    help="In this state.",
)
@click.option(
    "--stranded",
    is_flag=True,
    show_envvar=True,
    help="Open ones of all tenants that were begun with other steps than the application declares.",
)
@limit_option(50, "Executions in a page.")
@cursor_option
@json_option("execution list")
@click.pass_context
def command(
    context: click.Context,
    /,
    app: Windlass,
    tenant: str,
    pipeline: str | None,
    status: str | None,
    stranded: bool,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List executions of a tenant that fit every filter given, newest first.

    Where few of very many executions fit, a page may hold fewer than --limit, even none, and still have a next one.

    \b
        windlass execution list --pipeline orders --status dlq
        windlass execution list --stranded
    """
    if stranded:
        _refuse_with_stranded(context)
        found = app.executions.stranded(pipeline=pipeline, limit=limit)
        page = Page(found)
    else:
        page = app.executions.find(tenant, pipeline=pipeline, status=status, cursor=cursor, limit=limit)
    row = partial(_row, with_tenant=stranded)
    show_page(app, page, COLUMNS, row, "executions", cursor, as_json=as_json)
    if stranded and page.items and not as_json:
        note("move one to another version of its pipeline: windlass execution redrive ID --to-version …")


def _refuse_with_stranded(context: click.Context) -> None:
    given = [
        f"--{name}"
        for name in ("tenant", "status", "cursor")
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"--stranded lists open executions of all tenants; leave out {' and '.join(given)}")


def _row(execution: Execution, now: datetime, *, with_tenant: bool) -> list[Cell]:
    return [
        Cell(str(execution.id)),
        Cell(execution.status.value, STATUS_STYLES[execution.status]),
        Cell(f"{execution.pipeline}@{execution.pipeline_version}"),
        Cell(execution.tenant if with_tenant else "", plain=execution.tenant),
        Cell(execution.key or ""),
        Cell("" if execution.status is ExecutionStatus.SUCCEEDED else execution.step or f"step {execution.cursor}"),
        Cell(str(execution.attempt) if execution.attempt > 1 else "", "yellow", plain=str(execution.attempt)),
        Cell(f"{execution.rejected:,}" if execution.rejected else "", "yellow", plain=str(execution.rejected)),
        moment_cell(execution.created_at, now),
        Cell(phrases.first_line(execution.error_message), "red" if execution.status in DEAD else "yellow"),
    ]
