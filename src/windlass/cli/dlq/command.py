"""`windlass dlq`."""

from __future__ import annotations

import click

from windlass.cli.dlq import listing, purging, redriving, show
from windlass.cli.groups import NounGroup


@click.group(name="dlq", cls=NounGroup)
def command() -> None:
    """List, group, show, re-drive and purge dead letters: jobs that failed for good."""


for verb in (listing.command, listing.groups, show.command, redriving.command, purging.command):
    command.add_command(verb)
