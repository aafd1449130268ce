"""`windlass schedule`."""

from __future__ import annotations

from typing import Final

import click

from windlass.cli.groups import NounGroup
from windlass.cli.schedule import list_command, preview, show, switches


@click.group(name="schedule", cls=NounGroup)
def command() -> None:
    """List, show, pause, resume, trigger and remove schedules, and preview their times."""


VERBS: Final = (
    *(list_command.command, show.command, switches.pause, switches.resume, switches.trigger, switches.remove),
    preview.command,
)
for verb in VERBS:
    command.add_command(verb)
