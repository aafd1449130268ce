"""Results as a table for people and pipes, and as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import click

from windlass._version import __version__
from windlass.cli.bench.scratch import Stores
from windlass.cli.bench.workloads import MEGABYTES, MILLISECONDS, Result, Workload
from windlass.cli.output import console, facts
from windlass.cli.tables import Cell, Column, table

COLUMNS: Final = (
    Column("", lead=True), Column("workload", lead=True), Column("jobs", right=True), Column("result", right=True),
    Column("beside", right=True), Column("ratio", right=True), Column("once"),
)  # fmt: skip


def introduce(stores: Stores, workloads: Sequence[Workload], concurrency: int) -> None:
    """Write what is measured, and where."""
    here = machine()
    rows = [("store", stores.main.description)]
    rows += [("note", stores.note)] if stores.note else []
    rows += [("SQLite", stores.sqlite.description)] if any(workload.on_sqlite for workload in workloads) else []
    rows += [
        ("machine", f"{here['cpus']} CPUs, Python {here['python']}, {here['loop']}, {here['system']}"),
        ("drains", f"{concurrency} coroutines a process, default settings, jobs with 200 bytes of arguments"),
    ]
    facts("windlass bench", rows)


def machine() -> dict[str, Any]:
    """Where this was measured."""
    try:
        loop = f"uvloop {version('uvloop')}"
    except PackageNotFoundError:
        loop = "asyncio"
    return {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count(), "loop": loop}


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """Everything, for programs."""
    return {"version": __version__, "machine": machine(), "results": [facts_of(result) for result in results]}


def facts_of(result: Result) -> dict[str, Any]:
    """One result, for programs."""
    workload = result.workload
    named = {"workload": workload.key, "title": workload.title, "unit": workload.unit, "verified": not result.problems}
    return {**result._asdict(), **named}


def show(results: Sequence[Result]) -> None:
    """Write a table."""
    table(COLUMNS, [row(result) for result in results])


def row(result: Result) -> list[Cell]:
    """One result, for people."""
    workload = result.workload
    value = number(workload.unit, result.value)
    if workload.unit == MILLISECONDS:
        value = f"{result.value:.2f} / {result.details['p99']:.1f} ms"
    if "join_ms" in result.details:
        value += f", join {result.details['join_ms']:.0f} ms"
    if "pickup_p50" in result.details:
        value += f", slowest {result.details['slowest']:,.0f}/s, pick-up {result.details['pickup_p50']:.1f} ms"
    if "jobs_a_commit" in result.details:
        value += f", {result.details['jobs_a_commit']:.1f} a commit"
    return [
        Cell(workload.key, "bold cyan"),
        Cell(workload.title),
        Cell(f"{result.jobs:,}", "dim"),
        Cell(value, "bold"),
        Cell("" if result.floor is None else number(workload.unit, result.floor), "dim"),
        Cell("" if result.ratio is None else f"{result.ratio:.0%}"),
        Cell("✗ no", "red") if result.problems else Cell("✓", "green"),
    ]


def number(unit: str, value: float) -> str:
    """A value with its unit."""
    if unit == MILLISECONDS:
        return f"{value:.2f} ms"
    return f"{value:.0f} MB" if unit == MEGABYTES else f"{value:,.0f}/s"


def exit_code(results: Sequence[Result]) -> int:
    """Write what the checks found wrong; 1 if there is something."""
    wrong = [f"{result.workload.key}: {problem}" for result in results for problem in result.problems]
    for line in wrong:
        click.echo(line, err=True)
    return 1 if wrong else 0


@contextmanager
def progress(wanted: bool) -> Iterator[Callable[[str], None]]:
    """Show what is being measured at the moment, and for how long already."""
    if not wanted:
        yield lambda text: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console(), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda text: bar.reset(task, description=text)
