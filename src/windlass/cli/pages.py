"""Lists and pages as tables or JSON, and the command for the next page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import click
from click.core import ParameterSource

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.output import note, write_items
from windlass.cli.tables import Cell, Column, table
from windlass.client.filters import Page

T = TypeVar("T")


def show_list(
    app: Windlass,
    found: Sequence[T],
    columns: Sequence[Column],
    row: Callable[[T, datetime], Sequence[Cell]],
    nothing: str,
    *,
    as_json: bool,
) -> None:
    """Write all that was found; `nothing` says that it is none. A row is shown as of now."""
    if as_json:
        write_items(found)
    elif found:
        now = app.parts.clock.now()
        table(columns, [row(item, now) for item in found])
    else:
        note(nothing)


def show_page(
    app: Windlass,
    page: Page[T],
    columns: Sequence[Column],
    row: Callable[[T, datetime], Sequence[Cell]],
    noun: str,
    cursor: str | None,
    *,
    as_json: bool = False,
) -> None:
    """Write the page that starts at `cursor`, and how to continue. A row is shown as of now."""
    if as_json:
        write_items(page.items, page.next_cursor)
        return
    if page.items:
        now = app.parts.clock.now()
        table(columns, [row(item, now) for item in page])
    elif page.next_cursor is None:
        note(f"no {noun} fit" if cursor is None else f"no more {noun} fit")
    else:
        note("none fits among those that were looked at")
    if page.next_cursor is not None:
        note(f"go on: {again(page.next_cursor)}")


def again(cursor: str) -> str:
    """Return the command line with another cursor; an age becomes the time it meant, so that it stays the same."""
    context = click.get_current_context()
    arguments = context.command_path.split()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name != "cursor" and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            given = context.params[name]
            pairs = [f"{key}={_written(value)}" for key, value in given.items()] if isinstance(given, dict) else [given]
            for value in pairs:
                arguments += [parameter.opts[0], _written(value)]
    return shlex.join([*arguments, "--cursor", cursor])


def _written(value: object) -> str:
    return phrases.utc(value) if isinstance(value, datetime) else str(value)
