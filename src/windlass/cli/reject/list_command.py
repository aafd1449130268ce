"""`windlass reject list|groups`: a page of rejects, and what they have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.pages import show_list, show_page
from windlass.cli.parameters import cursor_option, json_option, limit_option, on_application
from windlass.cli.reject.filters import reject_filters
from windlass.cli.tables import Cell, Column, moment_cell, pipe_epilog
from windlass.client.reject_filters import RejectFiltersDict
from windlass.domain.reject import GROUPINGS, STREAM, Reject, RejectGroup

REJECTS: Final = (
    Column("execution", lead=True),
    Column("pipeline", lead=True),
    Column("step", lead=True),
    Column("item"),
    Column("fingerprint"),
    Column("retries", right=True),
    Column("rejected", right=True),
    Column("re-driven as"),
    Column("error", rest=True),
)
GROUPS: Final = (
    Column("group", lead=True),
    Column("count", right=True),
    Column("share", right=True),
    Column("first rejected", right=True),
    Column("last rejected", right=True),
    Column("error", rest=True),
)


@click.command(name="list", epilog=pipe_epilog("reject", REJECTS))
@on_application
@reject_filters
@limit_option(50, "Rejects in a page.")
@cursor_option
@json_option("reject list")
def command(app: Windlass, filters: RejectFiltersDict, limit: int, cursor: str | None, as_json: bool) -> None:
    """List rejects that fit every filter given, the latest first.

    Where few of very many fit, a page may hold fewer than --limit, even none, and still have a next one. --json writes
    every field of the envelope, and the item if the pipeline keeps it (include_payload).

    \b
        windlass reject list --since 2h
        windlass reject list --pipeline orders --step price --json
    """
    page = app.rejects.find(cursor=cursor, limit=limit, **filters)
    show_page(app, page, REJECTS, _reject, "rejects", cursor, as_json=as_json)


@click.command(name="groups", epilog=pipe_epilog("group", GROUPS))
@on_application
@reject_filters
@click.option(
    "--by",
    type=click.Choice(list(GROUPINGS)),
    default=GROUPINGS[0],
    show_default=True,
    show_envvar=True,
    help="What the rejects of a group have in common.",
)
@limit_option(50, "Groups at most.")
@json_option("reject groups")
def groups(app: Windlass, filters: RejectFiltersDict, by: str, limit: int, as_json: bool) -> None:
    """Group rejects by item, error class or step, the largest group first, with its share of all.

    One item with a large share is a poison item; one error class, a rule that has changed or a service that is down;
    one step, a release of that step. The latest 20,000 that fit are counted.

    \b
        windlass reject groups --by error_class --since 1d
        windlass reject groups --pipeline orders
    """
    found = app.rejects.groups(by, limit=limit, **filters)
    show_list(app, found, GROUPS, _group, "no rejects fit", as_json=as_json)


def _reject(reject: Reject, now: datetime) -> list[Cell]:
    item = f"{reject.item_count:,} items" if reject.reject_scope == STREAM else reject.item
    return [
        Cell(reject.execution_id),
        Cell(reject.pipeline),
        Cell(reject.step_name),
        Cell(_short(item), plain=item),
        Cell(_short(reject.item_fingerprint), plain=reject.item_fingerprint),
        Cell(str(reject.retries_observed)),
        moment_cell(reject.rejected_at, now),
        Cell("" if reject.redriven_as is None else str(reject.redriven_as)),
        Cell(phrases.first_line(reject.error_message), "red"),
    ]


def _group(group: RejectGroup, now: datetime) -> list[Cell]:
    return [
        Cell(group.key),
        Cell(f"{group.count:,}", "bold", plain=str(group.count)),
        Cell(f"{group.share:.0%}", plain=f"{group.share:.4f}"),
        moment_cell(group.first_at, now),
        moment_cell(group.last_at, now),
        Cell(phrases.first_line(group.sample), "red"),
    ]


def _short(text: str) -> str:
    return text if len(text) <= 16 else f"{text[:12]}…"
