"""`windlass schedule`."""

from __future__ import annotations

import click

from windlass.cli.groups import NounGroup
from windlass.cli.schedule import preview


@click.group(name="schedule", cls=NounGroup)
def command() -> None:
    """Preview the times of a cron expression or an interval."""


for verb in (preview.command,):
    command.add_command(verb)
