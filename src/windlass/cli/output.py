"""Where to write, and how: drawn for people at a terminal, plain lines for everybody else."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from windlass.domain.control_characters import indented, json_escaped, visible
from windlass.errors import SerializationError
from windlass.submission.error_text import short
from windlass.submission.tagged import write_custom

if TYPE_CHECKING:
    from rich.console import Console

NO_STYLES: Final[Mapping[str, str]] = MappingProxyType({})


def drawn() -> bool:
    """Whether standard output deserves colours and boxes: it is a terminal, or `FORCE_COLOR` says so."""
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout is not None and sys.stdout.isatty())


def console() -> Console:
    """A rich console on standard output."""
    from rich.console import Console

    return Console(highlight=False)


def say(text: str) -> None:
    """Write a line at once: whoever reads a pipe must not wait for a buffer to fill."""
    click.echo(text)
    if sys.stdout is not None:
        sys.stdout.flush()


def note(text: str) -> None:
    """Write a remark for people, beside what the command puts out."""
    click.secho(text, err=True, dim=True)


def say_json(value: Any, *, indent: int = 2) -> None:
    """Write a value for programs: times in ISO 8601 and UTC, what JSON has no form for as its `repr`."""
    text = json_text(value)
    say(msgspec.json.format(text, indent=indent) if indent else text)


def say_items(items: Sequence[Any], next_cursor: str | None = None) -> None:
    """Write a list for programs; `next_cursor` leads to more of it."""
    say_json({"items": items, "next_cursor": next_cursor})


def json_text(value: Any) -> str:
    """A value as JSON, on one line."""
    return json_escaped(msgspec.json.encode(value, enc_hook=_written).decode())


def _written(value: Any) -> Any:
    try:
        return write_custom(value)
    except SerializationError:
        return short(value)


def facts(title: str, rows: Sequence[tuple[str, str]], styles: Mapping[str, str] = NO_STYLES) -> None:
    """Write labelled values, some of them in a style: in a box, or as `label: value` lines."""
    title, rows = visible(title), [(label, visible(value)) for label, value in rows]
    if not drawn():
        say(title)
        for label, value in rows:
            say(f"  {label}: {indented(value)}")
        return
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        grid.add_row(label, Text(value, styles.get(label, "")))
    heading = Text(title, "bold")  # no markup: it may show what users wrote
    console().print(Panel(grid, title=heading, title_align="left", border_style="cyan", expand=False))
