"""`windlass dlq show`: one dead letter, its attempts, and what to do first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.job.show import HISTORY, attempt_row, heading, traceback_lines
from windlass.cli.output import drawn, facts, say_json
from windlass.cli.parameters import job_id, json_option, on_application
from windlass.cli.tables import table
from windlass.domain.dead_letter import DeadLetter, about


@click.command(name="show")
@on_application
@click.argument("job", metavar="ID", callback=job_id)
@json_option("dlq show")
def command(app: Windlass, job: str, as_json: bool) -> None:
    """Show the envelope of a dead letter, every attempt at its job, and what to do first.

    \b
        windlass dlq show 0198c0de-0000-7000-8000-000000000001
    """
    letter, history = app.dead_letters.get(job), app.history(job)
    if as_json:
        fields = {field.name: getattr(letter, field.name) for field in dataclasses.fields(letter)}
        say_json({**fields, "first_action": letter.first_action, "history": history})
        return
    now = app.parts.clock.now()
    died = letter.created_at
    when = f"{phrases.local(died)} ({phrases.distance(died, now)})" if drawn() else phrases.utc(died)
    styles = {"error message": "red", "first action": "bold"}
    facts(letter.resource_name, [("job id", str(letter.job_id)), ("died", when), *_rows(letter)], styles)
    if history:
        heading("history")
        table(HISTORY, [attempt_row(attempt, now) for attempt in history])
    if letter.traceback:
        heading("traceback")
        traceback_lines(letter.traceback)


def _rows(letter: DeadLetter) -> Iterator[tuple[str, str]]:
    """What is not shown elsewhere, in the words of the envelope; what it does not have is left out."""
    elsewhere = {"job_id", "created_at_epoch_ms", "traceback", "resource_name"}
    for field in dataclasses.fields(letter):
        value = getattr(letter, field.name)
        if field.name not in elsewhere and value is not None:
            yield field.name.replace("_", " "), str(value).lower() if isinstance(value, bool) else str(value)
    yield "meaning", about(letter.terminal_reason).meaning
    yield "first action", letter.first_action
