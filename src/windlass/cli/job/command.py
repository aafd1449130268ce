"""`windlass job`."""

from __future__ import annotations

import click

from windlass.cli.groups import NounGroup
from windlass.cli.job import explain, listing, show, steering, tail


@click.group(name="job", cls=NounGroup)
def command() -> None:
    """List, show, explain, follow, cancel, pause, resume and retry jobs."""


for verb in (
    listing.command,
    show.command,
    explain.command,
    tail.command,
    steering.cancel,
    steering.pause,
    steering.resume,
    steering.retry,
):
    command.add_command(verb)
