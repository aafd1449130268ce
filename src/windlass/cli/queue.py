"""`windlass queue`: list queues, and pause, resume and limit them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.groups import NounGroup
from windlass.cli.known_names import known_name
from windlass.cli.output import note, write_line
from windlass.cli.pages import show_list
from windlass.cli.parameters import create_option, json_option, on_application, rate_options
from windlass.cli.resource import limit_text
from windlass.cli.tables import Cell, Column, moment_cell, pipe_epilog
from windlass.domain.cluster import Queue, QueueHour
from windlass.domain.limits import Per

COLUMNS: Final = (
    Column("queue", lead=True),
    Column("state", lead=True),
    Column("waiting", right=True),
    Column("running", right=True),
    Column("at a time", right=True),
    Column("rate", right=True),
    Column("oldest due", right=True),
    Column("done/h", right=True),
    Column("failed/h", right=True),
    Column("retried/h", right=True),
    Column("wait", right=True),
    Column("run", right=True),
)
CODES: Final = "Exit codes: 0 done, 1 no such queue is known, 2 wrong usage."


@click.group(name="queue", cls=NounGroup)
def command() -> None:
    """List queues, pause, resume and limit them."""


@command.command(name="list", epilog=pipe_epilog("queue", COLUMNS))
@on_application
@json_option("queue list")
def list_queues(app: Windlass, as_json: bool) -> None:
    """List every queue that has been used, with its waiting and running jobs and the last hour's counts.

    Waiting jobs are counted up to 10,000. At a time and rate: its limit, if any (`windlass queue limit`). /h: jobs
    that succeeded, jobs that failed for good and attempts that were retried, in the last hour; wait and run: average
    waiting time and run time.

    \b
        windlass queue list
    """
    queues = app.queues()
    show_list(app, queues, COLUMNS, _row, "no queue has been used", as_json=as_json)


@command.command(name="pause", epilog=CODES)
@on_application
@click.argument("name")
@create_option("queue")
def pause(app: Windlass, name: str, create: bool) -> None:
    """Stop claims from a queue until it is resumed. Running jobs continue.

    A queue is known once a job was in it, or if a job of the application is declared with it.

    \b
        windlass queue pause billing
    """
    with known_name():
        changed = app.pause_queue(name, create=create)
    write_line(f"queue {name} is paused" if changed else f"queue {name} was paused already")
    note(f"to undo it: windlass queue resume {name}")


@command.command(name="resume", epilog=CODES)
@on_application
@click.argument("name")
def resume(app: Windlass, name: str) -> None:
    """Let nodes claim from a queue again.

    \b
        windlass queue resume billing
    """
    with known_name(may_create=False):
        changed = app.resume_queue(name)
    write_line(f"queue {name} is resumed" if changed else f"queue {name} was not paused")


@command.command(name="limit", epilog=CODES)
@on_application
@click.argument("name")
@click.option("--concurrency", type=int, show_envvar=True, help="How many of its jobs may run at a time; 0 closes it.")
@rate_options
@create_option("queue")
def limit(app: Windlass, name: str, concurrency: int | None, rate: int | None, per: Per, create: bool) -> None:
    """Limit a queue for the whole cluster, at once. Without options its limit is lifted.

    \b
        windlass queue limit mail --concurrency 20 --rate 100 --per minute
        windlass queue limit mail
    """
    with known_name():
        app.limit_queue(name, concurrency, rate, per, create=create)
    write_line(f"queue {name} lets through {limit_text(concurrency, rate, per)}")
    if concurrency is not None or rate is not None:
        note(f"to lift it: windlass queue limit {name}")


def _row(queue: Queue, now: datetime) -> list[Cell]:
    return [
        Cell(queue.name),
        Cell("paused", "yellow") if queue.paused else Cell("open", "green"),
        Cell(phrases.counted(queue.waiting)),
        Cell(f"{queue.running:,}", "bold blue" if queue.running else ""),
        Cell("" if queue.concurrency is None else f"{queue.concurrency:,}", "" if queue.concurrency else "yellow"),
        Cell("" if queue.rate is None else f"{queue.rate:,} per {queue.per}"),
        moment_cell(queue.oldest_due, now),
        *_hour(queue.last_hour),
    ]


def _hour(hour: QueueHour) -> list[Cell]:
    """Return the cells of the last hour; zero is empty, so that unused columns are left out and failures stand out."""
    counts = ((hour.succeeded, ""), (hour.failed, "bold red"), (hour.retried, "yellow"))
    means = (hour.wait_ms, hour.run_ms)
    return [
        *(Cell(f"{count:,}" if count else "", style, plain=str(count)) for count, style in counts),
        *(Cell("") if mean is None else Cell(phrases.span(mean), plain=str(mean)) for mean in means),
    ]
