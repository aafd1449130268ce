"""`windlass health`: a probe."""

from __future__ import annotations

import dataclasses

import click

from windlass.cli import phrases
from windlass.cli.application import application, load_app
from windlass.cli.output import drawn, write_json, write_line
from windlass.cli.parameters import json_option
from windlass.client.health import Health
from windlass.domain.control_characters import visible


@click.command(
    name="health",
    epilog="Exit codes: 0 healthy, 1 not, with the reason on standard error.",
)
@application
@click.option(
    "--max-age",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    show_envvar=True,
    help="Count only workers whose last heartbeat is younger; default: those that hold their lease.",
)
@json_option("health")
def command(location: str, max_age: float | None, as_json: bool) -> None:
    """Say whether APP can work: its store answers, the schema is current, and workers are alive and do their work.

    Workers whose statements the store refuses, and a sweeper that does not pass, are unhealthy, too. Dispatch lag: how
    long after their due times jobs were claimed in the last minute or two, the median and the 95th percentile.

    It changes no job, and suits probes of container platforms and load balancers.

    \b
        windlass health shop:app --max-age 30
    """
    app = load_app(location)
    try:
        found = app.health(max_age=max_age)
    finally:
        app.close()
    if as_json:
        fields = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
        write_json({"healthy": bool(found), **fields})
    elif found:
        _print_health(found)
    if not found:
        # An error of the store names it already.
        where = "" if found.reason.startswith(found.store) else f"{found.store}: "
        click.secho(f"unhealthy: {visible(where + found.reason)}", err=True, fg="red")
        raise SystemExit(1)


def _print_health(found: Health) -> None:
    workers = "1 worker" if found.workers == 1 else f"{found.workers} workers"
    status = click.style("healthy", fg="green") if drawn() else "healthy"
    swept = "" if found.sweeper_age is None else f", swept {found.sweeper_age:.0f} s ago"
    write_line(f"{status}: {found.store}, schema current, {workers} alive{swept}{_lag(found)}")


def _lag(found: Health) -> str:
    half, most = found.dispatch_lag_p50, found.dispatch_lag_p95
    if half is None or most is None:
        return ""
    return f", dispatch lag {phrases.span(int(half * 1000))} (p95 {phrases.span(int(most * 1000))})"
