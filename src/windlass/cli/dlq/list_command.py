"""`windlass dlq list|groups`: a page of dead letters, and what they have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.dlq.filters import letter_filters
from windlass.cli.output import note, write_items
from windlass.cli.pages import show_page
from windlass.cli.parameters import json_option, limit_option, on_application
from windlass.cli.tables import Cell, Column, pipe_epilog, table
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
@click.option("--cursor", show_envvar=True, help="Go on where the page before ended; it says with what.")
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
    if as_json:
        write_items(page.items, page.next_cursor)
        return
    now = app.parts.clock.now()
    show_page(page, LETTERS, lambda letter: _letter(letter, now), "dead letters", cursor)


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
    if as_json:
        write_items(found)
    elif found:
        now = app.parts.clock.now()
        table(GROUPS, [_group(group, now) for group in found])
    else:
        note("no dead letters fit")


def _letter(letter: DeadLetter, now: datetime) -> list[Cell]:
    return [
        Cell(str(letter.job_id)),
        Cell(letter.terminal_reason, "yellow" if letter.retryable else "bold red"),
        Cell(letter.resource_name),
        Cell(letter.fingerprint),
        Cell(str(letter.retries_observed)),
        _when(letter.created_at, now),
        Cell(phrases.first_line(letter.error_message), "red"),
    ]


def _group(group: DeadLetterGroup, now: datetime) -> list[Cell]:
    return [
        Cell(group.fingerprint),
        Cell(f"{group.count:,}", "bold", plain=str(group.count)),
        Cell(group.target),
        _when(group.first_at, now),
        _when(group.last_at, now),
        Cell(phrases.first_line(group.sample), "red"),
    ]


def _when(moment: datetime, now: datetime) -> Cell:
    return Cell(phrases.distance(moment, now), plain=phrases.utc(moment))
