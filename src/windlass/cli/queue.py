"""`windlass queue`: what waits in which queue, and pausing whole queues."""

from __future__ import annotations

import difflib
from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.groups import NounGroup
from windlass.cli.output import note, say, say_items
from windlass.cli.parameters import json_option, on_application, rate_options
from windlass.cli.resource import limit_words
from windlass.cli.tables import Cell, Column, table
from windlass.domain.cluster import Queue, QueueHour
from windlass.domain.keys import check_queue
from windlass.domain.protected import Per

COLUMNS: Final = (
    Column("queue", lead=True),
    Column("state", lead=True),
    Column("waiting", right=True, lead=True),
    Column("running", right=True, lead=True),
    Column("oldest due", right=True),
    Column("done/h", right=True),
    Column("failed/h", right=True),
    Column("retried/h", right=True),
    Column("wait", right=True),
    Column("run", right=True),
)


@click.group(name="queue", cls=NounGroup)
def command() -> None:
    """List queues, pause, resume and limit them."""


@command.command(name="list")
@on_application
@json_option("queue list")
def list_queues(app: Windlass, as_json: bool) -> None:
    """List every queue that was ever used, with what waits in it, what runs and what ended in the last hour.

    What waits is counted up to 10,000. /h: jobs that succeeded, jobs that failed for good and attempts that are
    retried, in the last hour; wait and run: how long those that ran had waited, and how long they ran, on average.

    \b
        windlass queue list
    """
    queues = app.queues()
    if as_json:
        say_items(queues)
    elif queues:
        now = app.parts.clock.now()
        table(COLUMNS, [_row(queue, now) for queue in queues])
    else:
        note("no queue was ever used")


@command.command(name="pause")
@on_application
@click.argument("name")
def pause(app: Windlass, name: str) -> None:
    """Have no node claim from a queue, until it is resumed. What runs goes on.

    \b
        windlass queue pause billing
    """
    _remark_on(app, name)
    changed = app.pause_queue(name)
    say(f"queue {name} is paused" if changed else f"queue {name} was paused already")


@command.command(name="resume")
@on_application
@click.argument("name")
def resume(app: Windlass, name: str) -> None:
    """Let nodes claim from a queue again.

    \b
        windlass queue resume billing
    """
    _remark_on(app, name)
    changed = app.resume_queue(name)
    say(f"queue {name} is resumed" if changed else f"queue {name} was not paused")


@command.command(name="limit")
@on_application
@click.argument("name")
@click.option("--concurrency", type=int, show_envvar=True, help="How many of its jobs may run at a time.")
@rate_options
def limit(app: Windlass, name: str, concurrency: int | None, rate: int | None, per: Per) -> None:
    """Limit a queue for the whole cluster, at once. Without options its limit is lifted.

    \b
        windlass queue limit mail --concurrency 20 --rate 100 --per minute
    """
    _remark_on(app, name)
    app.limit_queue(name, concurrency, rate, per)
    say(f"queue {name} lets through {limit_words(concurrency, rate, per)}")


def _row(queue: Queue, now: datetime) -> list[Cell]:
    due = queue.oldest_due
    return [
        Cell(queue.name),
        Cell("paused", "yellow") if queue.paused else Cell("open", "green"),
        Cell(phrases.counted(queue.waiting)),
        Cell(f"{queue.running:,}", "bold blue" if queue.running else ""),
        Cell("") if due is None else Cell(phrases.distance(due, now), plain=phrases.utc(due)),
        *_hour(queue.last_hour),
    ]


def _hour(hour: QueueHour) -> list[Cell]:
    """Nothing is shown as nothing: columns that are empty for all queues are left out, and failures catch the eye."""
    counts = ((hour.succeeded, ""), (hour.failed, "bold red"), (hour.retried, "yellow"))
    means = (hour.wait_ms, hour.run_ms)
    return [
        *(Cell(f"{count:,}" if count else "", style, plain=str(count)) for count, style in counts),
        *(Cell("") if mean is None else Cell(phrases.span(mean), plain=str(mean)) for mean in means),
    ]


def _remark_on(app: Windlass, name: str) -> None:
    """A queue may be paused before its first job, so a name that nobody used is no error; but it may be mistyped."""
    check_queue(name)
    known = [queue.name for queue in app.queues()]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        note(f"no job was ever in queue {name}{f'; did you mean {close[0]}?' if close else ''}")
