"""`windlass reject`."""

from __future__ import annotations

import click

from windlass.cli.groups import NounGroup
from windlass.cli.reject import list_command, redrive


@click.group(name="reject", cls=NounGroup)
def command() -> None:
    """List, group and re-drive rejects: items that were given up while their execution went on."""


for verb in (list_command.command, list_command.groups, redrive.command):
    command.add_command(verb)
