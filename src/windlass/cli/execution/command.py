"""`windlass execution`."""

from __future__ import annotations

import click

from windlass.cli.execution import answer_commands, diff, explain, list_command, moves, redrive, show
from windlass.cli.groups import NounGroup


@click.group(name="execution", cls=NounGroup)
def command() -> None:
    """List, show, explain, cancel, pause, resume, answer, re-drive and compare executions of pipelines."""


for verb in (
    list_command.command,
    show.command,
    explain.command,
    moves.cancel,
    moves.pause,
    moves.resume,
    answer_commands.pending,
    answer_commands.complete,
    redrive.command,
    diff.command,
):
    command.add_command(verb)
