"""How the demo is told: drawn for people at a terminal, as plain lines for pipes; and what was promised and held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from windlass.cli.output import console, drawn, say

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Cell = tuple[str, str]
"""A text and its style, e.g. ("SUCCEEDED", "green")."""


class Board(Protocol):
    """A row of cells that changes while one watches."""

    def show(self, cells: Sequence[Cell], caption: str) -> None:
        """Replace what is shown."""


class Stage(Protocol):
    """Where scenes are told."""

    def scene(self, number: int, title: str, text: str) -> None:
        """Open a scene."""

    def code(self, text: str, name: str) -> None:
        """Show a program."""

    def line(self, *cells: Cell) -> None:
        """Tell one thing, in cells that follow each other."""

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Show a table."""

    def board(self) -> AbstractContextManager[Board]:
        """Open a board that lives as long as the `with` block."""


def stage() -> Stage:
    """The stage that suits standard output."""
    return DrawnStage() if drawn() else PlainStage()


class PlainStage:
    """One line for everything."""

    def scene(self, number: int, title: str, text: str) -> None:
        """Open a scene."""
        say(f"\n== {number}. {title}\n{text}")

    def code(self, text: str, name: str) -> None:
        """Show a program."""
        say(f"-- {name}")
        for line in text.strip().splitlines():
            say(f"   {line}".rstrip())

    def line(self, *cells: Cell) -> None:
        """Tell one thing."""
        say("   " + "  ".join(text for text, _ in cells).rstrip())

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Show a table with aligned columns."""
        texts = [list(headings), *([text for text, _ in row] for row in rows)]
        widths = [max(len(text) for text in column) for column in zip(*texts, strict=True)]
        for row in texts:
            say("   " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())

    @contextmanager
    def board(self) -> Iterator[Board]:
        """Open a board that prints its caption whenever that changes."""
        yield _PlainBoard()


class _PlainBoard:
    def __init__(self) -> None:
        self._last = ""

    def show(self, cells: Sequence[Cell], caption: str) -> None:
        if caption != self._last:
            self._last = caption
            say("   " + caption)


class DrawnStage:
    """Colours, boxes and a board that moves."""

    def __init__(self) -> None:
        self._console = console()

    def scene(self, number: int, title: str, text: str) -> None:
        """Open a scene."""
        from rich.padding import Padding
        from rich.rule import Rule

        self._console.print()
        self._console.print(Rule(f"[bold cyan]{number}[/]  [bold]{title}", align="left", style="cyan"))
        self._console.print(Padding(f"[dim]{text}[/]", (0, 3, 1, 3)))

    def code(self, text: str, name: str) -> None:
        """Show a program."""
        from rich.panel import Panel
        from rich.syntax import Syntax

        source = Syntax(text.strip(), "python", theme="ansi_dark", background_color="default")
        box = Panel(source, title=f"[bold]{name}", title_align="left", border_style="bright_black", expand=False)
        self._indented(box)

    def line(self, *cells: Cell) -> None:
        """Tell one thing."""
        from rich.text import Text

        self._indented(Text("  ").join(Text(text, style) for text, style in cells))

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Show a table."""
        self._indented(_table(headings, rows))

    @contextmanager
    def board(self) -> Iterator[Board]:
        """Open a board."""
        from rich.live import Live

        with Live(console=self._console, refresh_per_second=20) as live:
            yield _DrawnBoard(live.update)

    def _indented(self, what: RenderableType) -> None:
        from rich.padding import Padding

        self._console.print(Padding(what, (0, 0, 0, 3)))


class _DrawnBoard:
    def __init__(self, update: Callable[[RenderableType], None]) -> None:
        self._update = update

    def show(self, cells: Sequence[Cell], caption: str) -> None:
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        row = Text(" ").join(Text(f" {text} ", style) for text, style in cells)
        self._update(Padding(Group(row, Text(caption, "dim")), (0, 0, 0, 3)))


def _table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.ROUNDED, border_style="bright_black", header_style="bold")
    for column, heading in enumerate(headings):
        numbers = all(row[column][0].isdigit() for row in rows)
        table.add_column(heading, overflow="fold", justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(Text(text, style) for text, style in row))
    return table
