"""`windlass job`."""

from __future__ import annotations

import click

from windlass.cli.groups import NounGroup
from windlass.cli.job import explain, graph, list_command, moves, show, signal_command, tail


@click.group(name="job", cls=NounGroup)
def command() -> None:
    """List, show, explain, follow, draw, cancel, pause, resume, retry and signal jobs."""


for verb in (
    list_command.command,
    show.command,
    explain.command,
    tail.command,
    graph.command,
    moves.cancel,
    moves.pause,
    moves.resume,
    moves.retry,
    signal_command.command,
):
    command.add_command(verb)
