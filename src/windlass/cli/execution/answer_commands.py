"""`windlass execution pending|complete`: what waits for answers from outside, and one answer."""

from __future__ import annotations

import dataclasses
import json
import sys
from datetime import datetime
from typing import Any, Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.output import json_text, write_items, write_json, write_line
from windlass.cli.pages import show_page
from windlass.cli.parameters import cursor_option, json_option, limit_option, on_application, tenant_option
from windlass.cli.tables import Cell, Column, moment_cell, pipe_epilog
from windlass.domain.external_wait import ExternalWait

COLUMNS: Final = (
    Column("interaction", lead=True),
    Column("pipeline", lead=True),
    Column("step", lead=True),
    Column("asked", right=True),
    Column("deadline", right=True),
    Column("request", rest=True),
)


@click.command(name="pending", epilog=pipe_epilog("wait", COLUMNS))
@on_application
@tenant_option
@click.option("--pipeline", "-p", metavar="NAME", show_envvar=True, help="Of this pipeline, in all its versions.")
@limit_option(50, "Waits in a page.")
@cursor_option
@click.option("--tokens", is_flag=True, show_envvar=True, help="With --json: show the tokens, which let anyone answer.")
@json_option("execution pending")
def pending(
    app: Windlass, tenant: str, pipeline: str | None, limit: int, cursor: str | None, tokens: bool, as_json: bool
) -> None:
    """List steps of a tenant's executions that wait for answers from outside, the first deadline first.

    \b
        windlass execution pending --pipeline orders
    """
    page = app.executions.pending(pipeline, tenant=tenant, limit=limit, cursor=cursor)
    if as_json:
        write_items([_as_json(wait, tokens=tokens) for wait in page], page.next_cursor)
        return
    show_page(app, page, COLUMNS, _row, "waits", cursor)


@click.command(name="complete")
@on_application
@click.argument("interaction", metavar="[ID]", required=False)
@click.option("--answer", required=True, metavar="JSON", show_envvar=True, help="The answer, as JSON.")
@click.option("--token-stdin", is_flag=True, show_envvar=True, help="Read a token from standard input, instead of ID.")
@tenant_option
@json_option("execution complete")
def complete(
    app: Windlass, interaction: str | None, answer: str, token_stdin: bool, tenant: str, as_json: bool
) -> None:
    """Answer a step that waits, by its interaction id or by a token; the first answer holds.

    \b
        windlass execution complete 0198c0de-0000-7000-8000-000000000001:1 --answer '{"approved": true}'
    """
    if (interaction is None) is not token_stdin:
        raise click.UsageError("give the interaction ID, or --token-stdin and a token on standard input")
    try:
        value = json.loads(answer)
    except ValueError as error:
        raise click.UsageError(f"--answer must be JSON, like true or '{{\"approved\": true}}': {error}") from None
    if token_stdin:
        done = app.executions.complete(sys.stdin.read().strip(), value)
    else:
        done = app.executions.complete(interaction_id=interaction, answer=value, tenant=tenant)
    if as_json:
        write_json({field.name: getattr(done, field.name) for field in dataclasses.fields(done)})
        return
    first = f"was answered before, with {json_text(done.answer)}" if done.duplicate else "answered"
    write_line(f"{done.interaction_id}\t{first}")


def _as_json(wait: ExternalWait, *, tokens: bool) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(wait) if tokens or field.name != "token"]
    return {name: getattr(wait, name) for name in names}


def _row(wait: ExternalWait, now: datetime) -> list[Cell]:
    return [
        Cell(wait.interaction_id),
        Cell(wait.pipeline),
        Cell(wait.step),
        moment_cell(wait.created_at, now),
        moment_cell(wait.deadline, now),
        Cell(phrases.first_line(json_text(wait.request))),
    ]
