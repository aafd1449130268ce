"""`windlass dlq list|groups`: a page of dead letters, and what they have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.dlq.filters import letter_filters
from windlass.cli.pages import show_list, show_page
from windlass.cli.parameters import cursor_option, json_option, limit_option, on_application
from windlass.cli.tables import Cell, Column, moment_cell, pipe_epilog
from windlass.client.dead_letter_views import RedriveFilters
from windlass.domain.dead_letter import DeadLetter, DeadLetterGroup

LETTERS: Final = (
    Column("job", lead=True),
    Column("reason", lead=True),
    Column("target", lead=True),
    Column("fingerprint"),
    Column("retries", right=True),
    Column("died", right=True),
    Column("error", rest=True),
)
GROUPS: Final = (
    Column("fingerprint", lead=True),
    Column("count", right=True),
    Column("target", lead=True),
    Column("first died", right=True),
    Column("last died", right=True),
    Column("error", rest=True),
)


@click.command(name="list", epilog=pipe_epilog("dead letter", LETTERS))
@on_application
@letter_filters
@limit_option(50, "Dead letters in a page.")
@cursor_option
@json_option("dlq list")
def command(app: Windlass, filters: RedriveFilters, limit: int, cursor: str | None, as_json: bool) -> None:
    """List dead letters that fit every filter given, the latest first.

    Where few of very many fit, a page may hold fewer than --limit, even none, and still have a next one.

    \b
        windlass dlq list --since 2h
        windlass dlq list --kind execution --target invoices
        windlass dlq list --target shop:charge --filter reason=retry_exhausted --json
    """
    page = app.dead_letters.find(cursor=cursor, limit=limit, **filters)
    show_page(app, page, LETTERS, _letter, "dead letters", cursor, as_json=as_json)


@click.command(name="groups", epilog=pipe_epilog("group", GROUPS))
@on_application
@letter_filters
@limit_option(50, "Groups at most.")
@json_option("dlq groups")
def groups(app: Windlass, filters: RedriveFilters, limit: int, as_json: bool) -> None:
    """Group dead letters by target, error class and shape of message, the largest group first.

    Executions are grouped by pipeline and step. Numbers, ids and quoted values in messages make no difference. A
    group's fingerprint is what `dlq redrive` takes.

    \b
        windlass dlq groups
        windlass dlq groups --queue billing --since 1d
    """
    found = app.dead_letters.groups(limit=limit, **filters)
    show_list(app, found, GROUPS, _group, "no dead letters fit", as_json=as_json)


def _letter(letter: DeadLetter, now: datetime) -> list[Cell]:
    return [
        Cell(str(letter.job_id)),
        Cell(letter.terminal_reason, "yellow" if letter.retryable else "bold red"),
        Cell(letter.resource_name),
        Cell(letter.fingerprint),
        Cell(str(letter.retries_observed)),
        moment_cell(letter.created_at, now),
        Cell(phrases.first_line(letter.error_message), "red"),
    ]


def _group(group: DeadLetterGroup, now: datetime) -> list[Cell]:
    return [
        Cell(group.fingerprint),
        Cell(f"{group.count:,}", "bold", plain=str(group.count)),
        Cell(group.target),
        moment_cell(group.first_at, now),
        moment_cell(group.last_at, now),
        Cell(phrases.first_line(group.sample), "red"),
    ]
