"""`windlass publication`: what is passed on to subscribers listed, paused, resumed and tried again."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.groups import NounGroup
from windlass.cli.output import note, write_items, write_json, write_line
from windlass.cli.pages import show_page
from windlass.cli.parameters import json_option, limit_option, on_application
from windlass.cli.tables import Cell, Column, moment_cell, pipe_epilog, table
from windlass.client.publications import HandoffFiltersDict
from windlass.domain.publication import Handoff, HandoffStatus, PublicationBacklog

SUBSCRIPTIONS: Final = (
    Column("publication", lead=True),
    Column("subscriber", lead=True),
    Column("state", lead=True),
    Column("backlog", right=True),
    Column("failing", right=True),
    Column("lag", right=True),
    Column("in flight", right=True),
    Column("admitted/h", right=True),
    Column("suppressed/h", right=True),
    Column("rejected/h", right=True),
    Column("failed/h", right=True),
    Column("hand-off", right=True),
)
HANDOFFS: Final = (
    Column("publication", lead=True),
    Column("subscriber", lead=True),
    Column("status", lead=True),
    Column("key"),
    Column("tenant"),
    Column("attempts", right=True),
    Column("next try", right=True),
    Column("published", right=True),
    Column("id"),
    Column("reason", rest=True),
)
CODES: Final = "Exit codes: 0 done, 1 no such subscription, 2 wrong usage."
STATES: Final = {"paused": "yellow", "failing": "bold red", "waiting": "cyan", "not subscribed": "bold red"}


@click.group(name="publication", cls=NounGroup)
def command() -> None:
    """List, pause, resume and retry what is passed on to subscribers."""


@command.command(name="list", epilog=pipe_epilog("subscription", SUBSCRIPTIONS))
@on_application
@click.option("--failing", is_flag=True, show_envvar=True, help="Hand-offs that were refused or rejected, and why.")
@click.option("--publication", "-p", metavar="NAME", show_envvar=True, help="Of this publication.")
@click.option("--subscriber", "-s", metavar="NAME", show_envvar=True, help="To this subscriber.")
@limit_option(50, "Hand-offs in a page; with --failing.")
@click.option("--cursor", show_envvar=True, help="Go on where the page before ended; with --failing.")
@json_option("publication list")
def list_publications(
    app: Windlass,
    failing: bool,
    publication: str | None,
    subscriber: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List subscriptions with their backlog, or with --failing the hand-offs that have failed.

    Backlog: items that wait for the subscriber, counted up to 10,000; lag: how long the oldest has waited; in flight:
    the largest number of open executions at which it admits more; hand-off: mean time to admission. /h: in the last
    hour. Failures here are neither dead letters nor rejects.

    \b
        windlass publication list
        windlass publication list --failing --publication invoices
    """
    if failing:
        filters = HandoffFiltersDict(publication=publication, subscriber=subscriber, failing=True)
        _list_failing(app, filters, limit, cursor, as_json=as_json)
        return
    found = [
        one
        for one in app.publications.backlog()
        if publication in (None, one.publication) and subscriber in (None, one.subscriber)
    ]
    if as_json:
        write_items(found)
    elif not found:
        note("there is no subscription: no worker has started with a pipeline that publishes or subscribes")
    else:
        table(SUBSCRIPTIONS, [_subscription(one) for one in found])
        if any(one.failing for one in found):
            note("why: windlass publication list --failing")


def _list_failing(app: Windlass, filters: HandoffFiltersDict, limit: int, cursor: str | None, *, as_json: bool) -> None:
    page = app.publications.list(cursor=cursor, limit=limit, **filters)
    show_page(app, page, HANDOFFS, _handoff, "hand-offs", cursor, as_json=as_json)


@command.command(name="pause", epilog=CODES)
@on_application
@click.argument("publication")
@click.argument("subscriber")
def pause(app: Windlass, publication: str, subscriber: str) -> None:
    """Keep the items of a publication in the backlog of a subscriber until it is resumed. Others get theirs.

    \b
        windlass publication pause invoices billing
    """
    _steered(app.publications.pause(publication, subscriber), publication, subscriber, "paused")
    note(f"to undo it: windlass publication resume {publication} {subscriber}")


@command.command(name="resume", epilog=CODES)
@on_application
@click.argument("publication")
@click.argument("subscriber")
def resume(app: Windlass, publication: str, subscriber: str) -> None:
    """Pass the items of a publication on to a subscriber again, those that wait first.

    \b
        windlass publication resume invoices billing
    """
    _steered(app.publications.resume(publication, subscriber), publication, subscriber, "resumed")


@command.command(name="retry")
@on_application
@click.option("--publication", "-p", metavar="NAME", show_envvar=True, help="Of this publication.")
@click.option("--subscriber", "-s", metavar="NAME", show_envvar=True, help="To this subscriber.")
@click.option("--tenant", metavar="NAME", show_envvar=True, help="Of this tenant; of all if not given.")
@click.option(
    "--rejected", is_flag=True, show_envvar=True, help="Those that a destination outside has refused for good."
)
@limit_option(1_000, "How many at most; the latest first.")
@json_option("publication retry")
def retry(
    app: Windlass,
    publication: str | None,
    subscriber: str | None,
    tenant: str | None,
    rejected: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Try hand-offs that were refused again now, instead of at their next try. Fix the cause first.

    With --rejected those that a destination outside has refused for good. Others that are rejected are never tried
    again: their key was used with another payload, or they have none.

    \b
        windlass publication retry --publication invoices --subscriber billing
        windlass publication retry --publication invoices --subscriber crm --rejected
    """
    status = HandoffStatus.REJECTED if rejected else HandoffStatus.WAITING
    filters = HandoffFiltersDict(publication=publication, subscriber=subscriber, tenant=tenant, status=status)
    count = app.publications.retry(limit=limit, **filters)
    if as_json:
        write_json({"retried": count})
    else:
        write_line(f"{count:,} hand-off{'' if count == 1 else 's'} will be tried again now")


def _steered(found: bool, publication: str, subscriber: str, verb: str) -> None:
    if not found:
        raise click.ClickException(
            f"nothing named {subscriber} subscribes to {publication}; windlass publication list shows what does"
        )
    write_line(f"hand-offs of {publication} to {subscriber} are {verb}")


def _subscription(one: PublicationBacklog) -> list[Cell]:
    state = _state(one)
    waiting = f"{one.waiting:,}{'+' if one.bounded else ''}"
    latency = one.last_hour.latency_ms
    return [
        Cell(one.publication),
        Cell(one.subscriber),
        Cell(state, STATES.get(state, "green")),
        Cell(waiting if one.waiting else "", plain=str(one.waiting)),
        _number(one.failing, "bold red"),
        Cell(phrases.span(int(one.lag * 1000)) if one.waiting else "", plain=f"{one.lag:.1f}"),
        Cell("" if one.max_in_flight is None else f"≤ {one.max_in_flight:,}", plain=str(one.max_in_flight or "")),
        _number(one.last_hour.admitted),
        _number(one.last_hour.suppressed),
        _number(one.last_hour.rejected, "bold yellow"),
        _number(one.last_hour.failed, "bold red"),
        Cell("" if latency is None else phrases.span(int(latency)), plain="" if latency is None else f"{latency:.1f}"),
    ]


def _state(one: PublicationBacklog) -> str:
    if not one.kind:
        return "not subscribed"
    if one.paused:
        return "paused"
    return "failing" if one.failing else "waiting" if one.waiting else "up to date"


def _number(count: int, style: str = "") -> Cell:
    return Cell(f"{count:,}" if count else "", style, plain=str(count))


def _handoff(one: Handoff, now: datetime) -> list[Cell]:
    style = "bold red" if one.status is HandoffStatus.REJECTED else "cyan"
    return [
        Cell(one.publication),
        Cell(one.subscriber),
        Cell(one.status, style),
        Cell(one.key),
        Cell(one.tenant),
        Cell(str(one.attempts)),
        moment_cell(one.due_at, now),
        moment_cell(one.created_at, now),
        Cell(str(one.id)),
        Cell(phrases.first_line(one.reason), "red"),
    ]
