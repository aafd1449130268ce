"""`windlass schedule list`: every schedule, with its next tick."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli.pages import show_list
from windlass.cli.parameters import json_option, on_application
from windlass.cli.tables import Cell, Column, moment_cell, pipe_epilog
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
    nothing = "there is no schedule; declared ones are stored when a worker starts"
    show_list(app, found, COLUMNS, _row, nothing, as_json=as_json)


def _row(schedule: Schedule, now: datetime) -> list[Cell]:
    return [
        Cell(schedule.key),
        Cell(schedule.state, STATE_STYLES.get(schedule.state, "")),
        Cell(schedule.cron),
        Cell("" if schedule.zone == "UTC" else schedule.zone, plain=schedule.zone),
        moment_cell(schedule.next_at, now),
        moment_cell(schedule.last_at, now),
        Cell("" if schedule.overlap is Overlap.ALLOW else schedule.overlap.value, plain=schedule.overlap.value),
        Cell(schedule.misfire.value),
        Cell(f"{schedule.skipped:,}" if schedule.skipped else "", "yellow", plain=str(schedule.skipped)),
        Cell(schedule.target),
    ]
