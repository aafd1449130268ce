"""`windlass schedule show`: one schedule, what its times mean, and its next ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.known_names import unknown
from windlass.cli.output import drawn, facts, write_json
from windlass.cli.parameters import json_option, on_application
from windlass.cli.schedule.list_command import STATE_STYLES
from windlass.domain.schedule_plan import parse_times
from windlass.domain.stored_schedule import Schedule
from windlass.domain.suggestions import closest
from windlass.errors import InvalidOptionError

CODES: Final = "Exit codes: 0 done, 1 there is no such schedule, 2 wrong usage."


@click.command(name="show", epilog=CODES)
@on_application
@click.argument("key")
@json_option("schedule show")
def command(app: Windlass, key: str, as_json: bool) -> None:
    """Show all fields of a schedule, and its times in words.

    \b
        windlass schedule show hourly-sync
    """
    found = find_schedule(app, key)
    if as_json:
        fields = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
        write_json({**fields, "explanation": _explained(found)})
        return
    now = app.parts.clock.now()
    facts(found.key, list(_described(found, now)), {"state": STATE_STYLES.get(found.state, "")})


def find_schedule(app: Windlass, key: str) -> Schedule:
    """Return the schedule with this key, or end the command with the nearest one."""
    known = {schedule.key: schedule for schedule in app.schedules.list()}
    if key not in known:
        raise unknown("schedule", key, closest(key, known), may_create=False)
    return known[key]


def _described(schedule: Schedule, now: datetime) -> Iterator[tuple[str, str]]:
    yield "runs", schedule.target
    yield "state", schedule.state
    explained = _explained(schedule)
    yield "times", f"{schedule.cron} ({explained})" if explained else schedule.cron
    yield "zone", schedule.zone
    for label, moment in (("next", schedule.next_at), ("last", schedule.last_at)):
        if moment is not None:
            away = phrases.distance(moment, now)
            yield label, f"{phrases.local(moment)} ({away})" if drawn() else phrases.utc(moment)
    yield "misfire", schedule.misfire.value
    yield "overlap", schedule.overlap.value
    yield "skipped", f"{schedule.skipped:,}"


def _explained(schedule: Schedule) -> str:
    try:
        return parse_times(schedule.cron).explain()
    except InvalidOptionError:  # damaged, or of a later version
        return ""
