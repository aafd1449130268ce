"""`windlass schedule preview`: the next times of an expression, before it is deployed."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.cli import phrases
from windlass.cli.output import note, write_json
from windlass.cli.parameters import json_option
from windlass.cli.tables import Cell, Column, pipe_epilog, table
from windlass.domain.clock import SystemClock, from_micros, micros
from windlass.domain.schedule_plan import SchedulePlan, parse_times
from windlass.domain.schedule_preview import PreviewedTick, preview
from windlass.domain.zones import wall_clock

COLUMNS: Final = (
    Column("in its zone", lead=True),
    Column("in UTC"),
    Column("clock change"),
)


@click.command(name="preview", epilog=pipe_epilog("tick", COLUMNS))
@click.argument("expression")
@click.option("--zone", "-z", metavar="NAME", default="UTC", show_default=True, show_envvar=True, help="Its time zone.")
@click.option(
    "--from",
    "start",
    metavar="TIME",
    envvar="WINDLASS_SCHEDULE_PREVIEW_FROM",
    show_envvar=True,
    help="The first times after this one, e.g. 2030-03-30 or 2030-03-30T12:00, in the same zone; default: now.",
)
@click.option(
    "--count",
    "-n",
    type=click.IntRange(1, 1_000),
    default=10,
    show_default=True,
    show_envvar=True,
    help="How many times.",
)
@json_option("schedule preview")
def command(expression: str, zone: str, start: str | None, count: int, as_json: bool) -> None:
    """Print the next times of a cron expression or an interval, and say in words what it means.

    Times that a clock change moves, drops or repeats are marked. An interval is counted from --from. No application
    is needed.

    \b
        windlass schedule preview "0 0 2 * * ?" --zone Europe/Berlin
        windlass schedule preview "30 2 * * *" --zone Europe/Berlin --from 2030-03-29
        windlass schedule preview "every(hours=6)"
    """
    times = parse_times(expression)
    begin = micros(SystemClock().now() if start is None else _moment(start, zone))
    ticks = preview(SchedulePlan(times=times, zone=zone, anchor=begin), begin, count)
    if not ticks:
        raise click.ClickException(f"{times} does not fire after {phrases.utc(from_micros(begin))}")
    if as_json:
        items = [{"at": from_micros(tick.at_us), "wall": tick.wall.isoformat(), "note": tick.note} for tick in ticks]
        write_json({"expression": str(times), "explanation": times.explain(), "zone": zone, "items": items})
        return
    note(f"{times.explain()} ({zone})")
    table(COLUMNS, [_row(tick) for tick in ticks])


def _moment(text: str, zone: str) -> datetime:
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        raise click.BadParameter(
            f"expected a time like 2030-03-30 or 2030-03-30T12:00, got {text!r}", param_hint="--from"
        ) from None
    return given if given.tzinfo is not None else given.replace(tzinfo=wall_clock(zone).zone)


def _row(tick: PreviewedTick) -> list[Cell]:
    utc = from_micros(tick.at_us)
    return [
        Cell(f"{tick.wall:%a %Y-%m-%d %H:%M:%S %z}", plain=tick.wall.isoformat()),
        Cell(f"{utc:%Y-%m-%d %H:%M:%S}", "dim", plain=phrases.utc(utc)),
        Cell(tick.note, "yellow"),
    ]
