"""`windlass dlq`."""

from __future__ import annotations

import click

from windlass.cli.dlq import list_command, purge, redrive, show
from windlass.cli.groups import NounGroup


@click.group(name="dlq", cls=NounGroup)
def command() -> None:
    """List, group, show, re-drive and purge dead letters: jobs and executions that failed for good."""


for verb in (list_command.command, list_command.groups, show.command, redrive.command, purge.command):
    command.add_command(verb)
