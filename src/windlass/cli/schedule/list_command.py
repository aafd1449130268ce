"""`windlass schedule list`: every schedule, with its next tick."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.output import note, write_items
from windlass.cli.parameters import json_option, on_application
from windlass.cli.tables import Cell, Column, pipe_epilog, table
from windlass.domain.schedule_plan import Overlap
from windlass.domain.stored_schedule import Schedule

COLUMNS: Final = (
    Column("schedule", lead=True),
    Column("state", lead=True),
    Column("times", lead=True),
    Column("zone"),
    Column("next", right=True),
    Column("last", right=True),
    Column("overlap"),
    Column("misfire"),
    Column("skipped", right=True),
    Column("runs", rest=True),
)
STATE_STYLES: Final = {"active": "green", "paused": "yellow", "ended": "bright_black"}


@click.command(name="list", epilog=pipe_epilog("schedule", COLUMNS))
@on_application
@json_option("schedule list")
def command(app: Windlass, as_json: bool) -> None:
    """List schedules by key, with their next and last ticks.

    Those declared with @app.recurring are there once a worker of their application has started. Skipped: ticks that
    were missed or overlapped an earlier run.

    \b
        windlass schedule list
    """
    found = app.schedules.list()
    if as_json:
        write_items(found)
    elif found:
        now = app.parts.clock.now()
        table(COLUMNS, [_row(schedule, now) for schedule in found])
    else:
        note("there is no schedule; declared ones are stored when a worker starts")


def _row(schedule: Schedule, now: datetime) -> list[Cell]:
    return [
        Cell(schedule.key),
        Cell(schedule.state, STATE_STYLES.get(schedule.state, "")),
        Cell(schedule.cron),
        Cell("" if schedule.zone == "UTC" else schedule.zone, plain=schedule.zone),
        _moment(schedule.next_at, now),
        _moment(schedule.last_at, now),
        Cell("" if schedule.overlap is Overlap.ALLOW else schedule.overlap.value, plain=schedule.overlap.value),
        Cell(schedule.misfire.value),
        Cell(f"{schedule.skipped:,}" if schedule.skipped else "", "yellow", plain=str(schedule.skipped)),
        Cell(schedule.target),
    ]


def _moment(moment: datetime | None, now: datetime) -> Cell:
    return Cell("") if moment is None else Cell(phrases.distance(moment, now), plain=phrases.utc(moment))
