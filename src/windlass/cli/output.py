"""Output of commands: drawn at a terminal, plain lines elsewhere."""

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
    """Return whether to use colours and boxes: standard output is a terminal, or `FORCE_COLOR` is set."""
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout is not None and sys.stdout.isatty())


def console() -> Console:
    """Return a rich console on standard output."""
    from rich.console import Console

    return Console(highlight=False)


def write_line(text: str) -> None:
    """Write a line and flush: the reader of a pipe must not wait for a full buffer."""
    click.echo(text)
    if sys.stdout is not None:
        sys.stdout.flush()


def note(text: str) -> None:
    """Write a remark to standard error, beside the command's output."""
    click.secho(text, err=True, dim=True)


def write_json(value: Any, *, indent: int = 2) -> None:
    """Write a value as JSON: times in ISO 8601 and UTC, values without a JSON form as their `repr`."""
    text = json_text(value)
    write_line(msgspec.json.format(text, indent=indent) if indent else text)


def write_items(items: Sequence[Any], next_cursor: str | None = None) -> None:
    """Write a list as JSON; `next_cursor` leads to the next page."""
    write_json({"items": items, "next_cursor": next_cursor})


def json_text(value: Any) -> str:
    """Return a value as JSON, on one line."""
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
        write_line(title)
        for label, value in rows:
            write_line(f"  {label}: {indented(value)}")
        return
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        grid.add_row(label, Text(value, styles.get(label, "")))
    heading = Text(title, "bold")  # no markup: the text may come from users
    console().print(Panel(grid, title=heading, title_align="left", border_style="cyan", expand=False))
