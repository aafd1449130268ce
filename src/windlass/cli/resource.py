"""`windlass resource`: list resources, and set their limits."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli.groups import NounGroup
from windlass.cli.known_names import check_known
from windlass.cli.output import note, write_line
from windlass.cli.pages import show_list
from windlass.cli.parameters import create_option, json_option, on_application, rate_options
from windlass.cli.tables import Cell, Column, pipe_epilog
from windlass.domain.keys import check_name
from windlass.domain.limits import Per, Resource
from windlass.submission.declared_names import declared_resources

COLUMNS: Final = (
    Column("resource", lead=True),
    Column("key", lead=True),
    Column("in use", right=True),
    Column("at a time", right=True),
    Column("rate", right=True),
    Column("looked at again", right=True),
)


@click.group(name="resource", cls=NounGroup)
def command() -> None:
    """List resources, and say how many jobs may use one at a time."""


@command.command(name="list", epilog=pipe_epilog("resource", COLUMNS))
@on_application
@json_option("resource list")
def list_resources(app: Windlass, as_json: bool) -> None:
    """List resources, their recently used keys, and the permits in use.

    \b
        windlass resource list
    """
    found = app.resources()
    show_list(app, found, COLUMNS, _row, "no resource is configured", as_json=as_json)


@command.command(name="set", epilog="Exit codes: 0 done, 1 no such resource is known, 2 wrong usage.")
@on_application
@click.argument("name")
@click.option("--max-concurrent", type=int, show_envvar=True, help="How many jobs may use it at a time; 0 closes it.")
@rate_options
@click.option(
    "--retry-delay",
    type=float,
    default=5.0,
    show_default=True,
    show_envvar=True,
    help="Seconds until a full one is looked at.",
)
@create_option("resource")
def set_resource(
    app: Windlass, name: str, max_concurrent: int | None, rate: int | None, per: Per, retry_delay: float, create: bool
) -> None:
    """Change the limits of a resource, for every node and at once. Each of its keys has as many permits.

    A resource is known once it was configured, or if a job of the application is declared with it.

    \b
        windlass resource set stripe --max-concurrent 5 --rate 100
        windlass resource set mailgun --rate 10 --create
    """
    if not create and check_name(name, "resource") not in (declared := declared_resources(app.registry)):
        check_known("resource", name, {*declared, *(known.name for known in app.resources())})
    app.configure_resource(name, max_concurrent, rate, per, retry_delay)
    write_line(f"resource {name} lets through {limit_text(max_concurrent, rate, per)}")
    if max_concurrent == 0:
        note(f"its jobs wait until it is opened again: windlass resource set {name} --max-concurrent 1")


def limit_text(cap: int | None, rate: int | None, per: Per | None) -> str:
    """Return a limit as text."""
    parts = [] if cap is None else [f"{cap:,} at a time"]
    if rate is not None:
        parts.append(f"{rate:,} per {per}")
    return ", ".join(parts) or "any number"


def _row(resource: Resource, _now: datetime) -> list[Cell]:
    full = resource.max_concurrent is not None and resource.in_use >= resource.max_concurrent
    return [
        Cell(resource.name),
        Cell(resource.key or ""),
        Cell(f"{resource.in_use:,}", "yellow" if full else ""),
        Cell("" if resource.max_concurrent is None else f"{resource.max_concurrent:,}"),
        Cell("" if resource.rate is None else f"{resource.rate:,} per {resource.per}"),
        Cell(f"{resource.retry_delay:g} s"),
    ]
