"""`windlass schedule pause|resume|trigger|remove`."""

from __future__ import annotations

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.confirmation import confirm
from windlass.cli.output import note, write_json, write_line
from windlass.cli.parameters import json_option, on_application, yes_option
from windlass.cli.schedule.show import CODES, find_schedule


@click.command(name="pause", epilog=CODES)
@on_application
@click.argument("key")
def pause(app: Windlass, key: str) -> None:
    """Stop the ticks of a schedule until it is resumed. Its runs continue, and what it misses is not caught up with.

    \b
        windlass schedule pause hourly-sync
    """
    if not app.schedules.pause(key):
        raise click.ClickException(f"schedule {find_schedule(app, key).key} has ended, so there is nothing to pause")
    write_line(f"schedule {key} is paused")
    note(f"to undo it: windlass schedule resume {key}")


@click.command(name="resume", epilog=CODES)
@on_application
@click.argument("key")
def resume(app: Windlass, key: str) -> None:
    """Resume a schedule with its first tick after now.

    \b
        windlass schedule resume hourly-sync
    """
    if not app.schedules.resume(key):
        raise click.ClickException(f"schedule {find_schedule(app, key).key} has ended; declare or store it anew")
    next_at = find_schedule(app, key).next_at
    write_line(f"schedule {key} is active" + (f"; its next tick is at {phrases.utc(next_at)}" if next_at else ""))


@click.command(name="trigger", epilog=CODES)
@on_application
@click.argument("key")
@json_option("schedule trigger")
def trigger(app: Windlass, key: str, as_json: bool) -> None:
    """Run a schedule's job now, also while it is paused. Its ticks stay as they are.

    \b
        windlass schedule trigger hourly-sync
    """
    handle = app.schedules.trigger(key)
    if handle is None:
        find_schedule(app, key)
        raise click.ClickException(f"schedule {key} was removed just now")
    if as_json:
        write_json({"job_id": handle.id})
    else:
        write_line(str(handle.id))
        note(f"to look at it: windlass job show {handle.id}")


@click.command(name="remove", epilog=CODES)
@on_application
@click.argument("key")
@yes_option
def remove(app: Windlass, key: str, yes: bool) -> None:
    """Remove a schedule that app.schedule has stored. Its runs stay.

    One that the application or a running worker declares with @app.recurring is refused: it would be back at the next
    start of a worker.

    \b
        windlass schedule remove hourly-sync
    """
    find_schedule(app, key)
    confirm(f"Remove schedule {key} of {app.database.description}?", yes=yes)
    if not app.schedules.remove(key):
        raise click.ClickException(f"schedule {key} was removed just now")
    write_line(f"schedule {key} is removed")
