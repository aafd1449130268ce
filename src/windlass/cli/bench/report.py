"""Results as a table for people, as lines for pipes, as JSON for machines."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from windlass._version import __version__
from windlass.cli.bench.catalogue import BY_KEY
from windlass.cli.bench.runs import Progress, verdicts
from windlass.cli.bench.workloads import MEGABYTES, MILLISECONDS, Result, Workload
from windlass.cli.output import console, drawn, say

HEADINGS = ("", "workload", "jobs", "result", "floor", "ratio", "target", "once")


def as_json(results: Mapping[str, Result]) -> dict[str, Any]:
    """Everything, for machines."""
    met = verdicts(results, BY_KEY)
    return {
        "version": __version__,
        "machine": machine(),
        "results": [
            {
                "workload": key,
                "title": BY_KEY[key.upper()].title,
                "about": BY_KEY[key.upper()].about,
                "store": result.store,
                "jobs": result.jobs,
                "unit": BY_KEY[key.upper()].unit,
                "value": result.value,
                "values": result.values,
                "floor": result.floor,
                "floors": result.floors,
                "ratio": result.ratio,
                "target": BY_KEY[key.upper()].target,
                "met": met[key],
                "verified": not result.problems,
                "problems": result.problems,
                "details": dict(result.details),
            }
            for key, result in results.items()
        ],
    }


def machine() -> dict[str, Any]:
    """Where this was measured."""
    try:
        loop = f"uvloop {version('uvloop')}"
    except PackageNotFoundError:
        loop = "asyncio"
    return {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count(), "loop": loop}


def show(results: Mapping[str, Result]) -> None:
    """A table, or lines with the same columns."""
    met = verdicts(results, BY_KEY)
    rows = [_row(BY_KEY[key.upper()], result, met[key]) for key, result in results.items()]
    if drawn():
        _draw(rows)
        return
    texts = [list(HEADINGS), *rows]
    widths = [max(len(text) for text in column) for column in zip(*texts, strict=True)]
    for row in texts:
        say("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def problems(results: Mapping[str, Result]) -> list[str]:
    """Everything that the checks found wrong."""
    return [f"{key}: {problem}" for key, result in results.items() for problem in result.problems]


def _row(workload: Workload, result: Result, met: bool | None) -> list[str]:
    mark = {True: " ✓", False: " ✗", None: ""}[met]
    return [
        workload.key,
        workload.title,
        f"{result.jobs:,}",
        _value(workload, result),
        "-" if result.floor is None else _number(workload.unit, result.floor),
        "-" if result.ratio is None else f"{result.ratio:.0%}",
        workload.target + mark,
        "✗ no" if result.problems else "✓",
    ]


def _number(unit: str, value: float) -> str:
    if unit == MILLISECONDS:
        return f"{value:.2f} ms"
    return f"{value:.0f} MB" if unit == MEGABYTES else f"{value:,.0f}/s"


def _value(workload: Workload, result: Result) -> str:
    if workload.unit == MILLISECONDS:
        return f"{result.value:.2f} / {result.details['p99']:.1f} ms"
    return _number(workload.unit, result.value)


def _draw(rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, border_style="cyan", header_style="bold", padding=(0, 1, 0, 0))
    for heading in HEADINGS:
        right = heading in ("jobs", "result", "floor", "ratio")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        styles = ("bold cyan", "", "dim", "bold", "dim", "", _style(row[6]), _style(row[7]))
        table.add_row(*(Text(text, style) for text, style in zip(row, styles, strict=True)))
    console().print(table)


def _style(text: str) -> str:
    return "red" if "✗" in text else "green" if "✓" in text else "dim"


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Progress]:
    """A line that says what is being measured and how far it is."""
    if not wanted:
        yield lambda workload, doing, done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(), transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("", total=1)
        told = ""

        def update(workload: Workload, doing: str, done: int, total: int) -> None:
            nonlocal told
            description = f"[bold cyan]{workload.key}[/] {workload.title} [dim]({doing})"
            if description != told:
                bar.reset(task)
            told = description
            bar.update(task, description=description, completed=done, total=total)

        yield update
