"""Tables: columns at a terminal that is wide enough, stacked where it is not, tab-separated for pipes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from windlass.cli import phrases
from windlass.cli.output import console, drawn, write_line
from windlass.domain.control_characters import visible

if TYPE_CHECKING:
    from rich.console import Console

GAP: Final = 2
LEAST_REST: Final = 24
"""Least width of the column that takes the rest; otherwise the table is stacked."""

STATUS_STYLES: Final = {
    "PENDING": "cyan",
    "RUNNING": "bold blue",
    "WAITING": "magenta",
    "PAUSED": "yellow",
    "SUCCEEDED": "green",
    "FAILED": "bold red",
    "CANCELED": "bright_black",
    "QUEUED": "cyan",
    "WAITING_EXTERNAL": "magenta",
    "WAIT_RETRY": "yellow",
    "DLQ": "bold red",
}


class Column(NamedTuple):
    """A heading, and the layout of its cells."""

    heading: str
    right: bool = False
    lead: bool = False
    """Whether it stays on the first line of a stacked row."""
    rest: bool = False
    """Whether it takes the remaining width, and its own line in a stacked row."""


class Cell(NamedTuple):
    """The content of a column."""

    text: str
    style: str = ""
    plain: str | None = None
    """The text for a pipe."""


def moment_cell(moment: datetime | None, now: datetime) -> Cell:
    """Return how far away a moment is; for a pipe, the moment itself."""
    return Cell("") if moment is None else Cell(phrases.distance(moment, now), plain=phrases.utc(moment))


def pipe_epilog(thing: str, columns: Sequence[Column]) -> str:
    """Return the description of a table's piped form, for a command's help."""
    return (
        f"Away from a terminal: a line per {thing} without a heading, its columns separated by tabs, times in UTC: "
        f"{', '.join(column.heading for column in columns)}."
    )


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    """Write a table. Columns without any text are left out, except for pipes, where all are kept."""
    if not drawn():
        for row in rows:
            write_line("\t".join(_one_line(cell.text if cell.plain is None else cell.plain) for cell in row))
        return
    kept = [index for index in range(len(columns)) if any(row[index].text for row in rows)]
    shown = [columns[index] for index in kept]
    cells = [[row[index] for index in kept] for row in rows]
    screen = console()
    widths = _widths(shown, cells)
    if sum(widths) + GAP * (len(widths) - 1) <= screen.width:
        _draw(screen, shown, cells, widths)
    else:
        _stack(screen, shown, cells)


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[int]:
    from rich.cells import cell_len

    return [
        LEAST_REST if column.rest else max(cell_len(text) for text in (column.heading, *(row[at].text for row in rows)))
        for at, column in enumerate(columns)
    ]


def _draw(screen: Console, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], widths: Sequence[int]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawing = Table(
        box=SIMPLE_HEAD,  # its dividers are a space wide, and the padding is the other half of the gap
        padding=(0, GAP - 1, 0, 0),
        show_edge=False,
        pad_edge=False,
        header_style="bold",
        border_style="bright_black",
    )
    for column, width in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column.right else "left"
        # Only a column that may wrap is made narrower; its text is then cut instead of wrapped.
        drawing.add_column(column.heading, justify=justify, min_width=width, no_wrap=not column.rest)
    for row in rows:
        drawing.add_row(*(Text(_one_line(cell.text), cell.style, no_wrap=True, overflow="ellipsis") for cell in row))
    screen.print(drawing)


def _stack(screen: Console, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    """Write each row as a few lines: the leading cells, then the others with their headings, then the rest."""
    from rich.padding import Padding
    from rich.text import Text

    leads = [index for index, column in enumerate(columns) if column.lead]
    widths = {index: max(len(row[index].text) for row in rows) for index in leads}
    for row in rows:
        head = [Text(row[index].text.ljust(widths[index]), row[index].style) for index in leads]
        screen.print(Text(" " * GAP).join(head), soft_wrap=True)
        named = [(column, cell) for column, cell in zip(columns, row, strict=True) if cell.text and not column.lead]
        facts = [f"{column.heading} {_one_line(cell.text)}" for column, cell in named if not column.rest]
        below = [Text(" · ".join(facts), "dim")] if facts else []
        below += [
            Text(_one_line(cell.text), cell.style, no_wrap=True, overflow="ellipsis")
            for column, cell in named
            if column.rest
        ]
        for line in below:
            screen.print(Padding(line, (0, 0, 0, GAP), expand=False))
