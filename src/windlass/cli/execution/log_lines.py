"""The log of an execution as lines of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from windlass.cli import phrases
from windlass.cli.tables import Cell, Column
from windlass.domain.execution import ExecutionTransition
from windlass.domain.execution_progress import step_name

LOG: Final = (
    Column("version", right=True, lead=True),
    Column("time", lead=True),
    Column("transition", lead=True),
    Column("step", lead=True),
    Column("attempt", right=True),
    Column("ran", right=True),
    Column("node"),
    Column("error", rest=True),
)
STYLES: Final = {
    "step": "green",
    "retry": "yellow",
    "paused": "yellow",
    "answered": "green",
    "parked": "magenta",
    "redriven": "magenta",
    "ended": "bold",
}
_DAY: Final = timedelta(days=1)
_OF_NO_STEP: Final = frozenset({"submitted"})


def log_rows(log: Sequence[ExecutionTransition], steps: tuple[str, ...], now: datetime) -> list[list[Cell]]:
    """Return the log; chunks that follow each other are one line."""
    return [_row(rows, steps, now) for rows in _together(log)]


def _together(log: Sequence[ExecutionTransition]) -> Iterator[list[ExecutionTransition]]:
    for (kind, _), rows in groupby(log, lambda row: (row.kind, row.step)):
        together = list(rows)
        if kind == "chunk":
            yield together
        else:
            yield from ([row] for row in together)


def _row(rows: Sequence[ExecutionTransition], steps: tuple[str, ...], now: datetime) -> list[Cell]:
    first, last = rows[0], rows[-1]
    many = len(rows) > 1
    failed = last.kind == "ended" and last.error_class is not None
    style = "bold red" if failed else STYLES.get(first.kind, "")
    return [
        Cell(f"{first.version}-{last.version}" if many else str(first.version)),
        Cell(_time(last.at, now), plain=phrases.utc(last.at)),
        Cell(f"{first.kind} x {len(rows):,}" if many else first.kind, style),
        Cell("" if first.kind in _OF_NO_STEP else step_name(steps, first.step)),
        Cell(str(last.attempt) if last.attempt > 1 else "", "yellow", plain=str(last.attempt)),
        Cell("" if last.run_ms is None else _span(last.run_ms)),
        Cell(last.node or ""),
        Cell(phrases.first_line(last.error), "red" if failed else "yellow"),
    ]


def _time(moment: datetime, now: datetime) -> str:
    """Return a time of day with milliseconds; with its date if that was more than a day ago."""
    local = moment.astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S}" if now - moment > _DAY else f"{local:%H:%M:%S}.{local.microsecond // 1000:03}"


def _span(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else phrases.span(int(milliseconds))
