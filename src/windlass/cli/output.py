"""Where to write, and how: drawn for people at a terminal, plain lines for everybody else."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console


def drawn() -> bool:
    """Whether standard output deserves colours and boxes: it is a terminal, or `FORCE_COLOR` says so."""
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def console() -> Console:
    """A rich console on standard output."""
    from rich.console import Console

    return Console(highlight=False)


def say(text: str) -> None:
    """Write a line at once: whoever reads a pipe must not wait for a buffer to fill."""
    click.echo(text)
    sys.stdout.flush()


def facts(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Write labelled values: in a box, or as `label: value` lines."""
    if not drawn():
        say(title)
        for label, value in rows:
            say(f"  {label}: {value}")
        return
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        grid.add_row(label, Text(value))
    console().print(Panel(grid, title=f"[bold]{title}", title_align="left", border_style="cyan", expand=False))
