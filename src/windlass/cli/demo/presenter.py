"""Shows the demo, drawn at a terminal and as plain lines elsewhere, and keeps count of what did not hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from windlass.cli.output import console, drawn, write_line
from windlass.domain.clock import monotonic

if TYPE_CHECKING:
    from rich.console import RenderableType

Cell = tuple[str, str]
"""A text and its style, e.g. ("SUCCEEDED", "green")."""
Board = Callable[[Sequence[Cell], str], None]
"""Replaces the cells and the caption of a row that changes while one watches."""
Picture = Callable[[Sequence[Sequence[Cell]]], None]
"""Replaces the lines of a picture, each of them made of cells."""
INDENT: Final = 3
PLAIN_WIDTH: Final = 80
LONGEST_WAIT: Final = 90.0
LOOK_EVERY: Final = 0.02


def until(condition: Callable[[], bool]) -> bool:
    """Look again and again; False if the condition does not come true in time."""
    pause, ends = threading.Event(), monotonic() + LONGEST_WAIT
    while not condition():
        if monotonic() > ends:
            return False
        pause.wait(LOOK_EVERY)
    return True


class Presenter:
    """Standard output, and what the demo expects of the store."""

    def __init__(self) -> None:
        self._console = console() if drawn() else None
        self.unmet: list[str] = []
        """Expectations that did not hold."""

    @property
    def width(self) -> int:
        """How many columns a line may have."""
        return (PLAIN_WIDTH if self._console is None else self._console.width) - INDENT

    def expect(self, what: str, holds: bool) -> None:
        """Remember and show an expectation that does not hold."""
        if not holds:
            self.unmet.append(what)
            self.line((f"✗ this did not hold: {what}", "bold red"))

    def scene(self, number: int, title: str, text: str) -> None:
        """Open a scene."""
        if self._console is None:
            write_line(f"\n== {number}. {title}\n{text}")
            return
        from rich.padding import Padding
        from rich.rule import Rule

        self._console.print()
        self._console.print(Rule(f"[bold cyan]{number}[/]  [bold]{title}", align="left", style="cyan"))
        self._console.print(Padding(f"[dim]{text}[/]", (0, 3, 1, 3)))

    def code(self, text: str, name: str) -> None:
        """Show a program."""
        if self._console is None:
            write_line(f"-- {name}")
            for line in text.strip().splitlines():
                write_line(f"   {line}".rstrip())
            return
        from rich.panel import Panel
        from rich.syntax import Syntax

        source = Syntax(text.strip(), "python", theme="ansi_dark", background_color="default")
        self._draw(Panel(source, title=f"[bold]{name}", title_align="left", border_style="bright_black", expand=False))

    def line(self, *cells: Cell) -> None:
        """Show cells that follow each other."""
        if self._console is None:
            write_line("   " + "  ".join(text for text, _ in cells).rstrip())
            return
        from rich.text import Text

        self._draw(Text("  ").join(Text(text, style) for text, style in cells))

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Show a table with aligned columns."""
        if self._console is None:
            texts = [list(headings), *([text for text, _ in row] for row in rows)]
            widths = [max(len(text) for text in column) for column in zip(*texts, strict=True)]
            for line in texts:
                write_line(
                    "   " + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
                )
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.ROUNDED, border_style="bright_black", header_style="bold")
        for column, heading in enumerate(headings):
            numbers = all(row[column][0].isdigit() for row in rows)
            table.add_column(heading, overflow="fold", justify="right" if numbers else "left")
        for row in rows:
            table.add_row(*(Text(text, style) for text, style in row))
        self._draw(table)

    @contextmanager
    def board(self) -> Iterator[Board]:
        """Open a board that lives as long as the `with` block; plain, it prints a caption whenever that changes."""
        if self._console is None:
            yield _plain_board()
            return
        from rich.console import Group
        from rich.live import Live
        from rich.text import Text

        with Live(console=self._console, refresh_per_second=20) as live:

            def show(cells: Sequence[Cell], caption: str) -> None:
                row = Text(" ").join(Text(f" {text} ", style) for text, style in cells)
                live.update(_indented(Group(row, Text(caption, "dim"))))

            yield show

    @contextmanager
    def picture(self) -> Iterator[Picture]:
        """Open a picture that changes as long as the `with` block lasts; plain, the last one is printed at its end."""
        if self._console is None:
            last: list[Sequence[Cell]] = []
            yield lambda lines: last.__setitem__(slice(None), lines)
            for line in last:
                write_line("".join([" " * INDENT, *(text for text, _ in line)]).rstrip())
            return
        from rich.live import Live
        from rich.text import Text

        with Live(console=self._console, refresh_per_second=20) as live:

            def show(lines: Sequence[Sequence[Cell]]) -> None:
                live.update(_indented(Text("\n").join(Text.assemble(*line) for line in lines)))

            yield show

    def _draw(self, what: RenderableType) -> None:
        assert self._console is not None
        self._console.print(_indented(what))


def _indented(what: RenderableType) -> RenderableType:
    from rich.padding import Padding

    return Padding(what, (0, 0, 0, INDENT))


def _plain_board() -> Board:
    shown = [""]

    def show(cells: Sequence[Cell], caption: str) -> None:
        del cells
        if caption != shown[-1]:
            shown.append(caption)
            write_line("   " + caption)

    return show
