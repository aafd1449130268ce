"""`windlass pipeline list`: every pipeline at a glance, and the triage rule that applies to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import click

from windlass.app import Windlass
from windlass.cli.groups import NounGroup
from windlass.cli.output import console, drawn, note, write_items
from windlass.cli.parameters import json_option, on_application
from windlass.cli.tables import Cell, Column, pipe_epilog, table
from windlass.domain.control_characters import visible
from windlass.domain.pipeline_summary import HourlyCount, PipelineSummary, TriageRule

COLUMNS: Final = (
    Column("pipeline", lead=True),
    Column("version", lead=True),
    Column("steps", right=True),
    Column("open", right=True),
    Column("done/h", right=True),
    Column("rejects/h", right=True),
    Column("DLQ/h", right=True),
    Column("backlog", right=True),
    Column("stranded", right=True),
    Column("waiting", right=True),
    Column("triage"),
)
NEXT: Final = {
    TriageRule.REJECTS_RISE: "windlass reject groups",
    TriageRule.DEAD_LETTERS_RISE: "windlass dlq groups",
    TriageRule.BACKLOG_RISES: "windlass publication list",
}
RULE_STYLES: Final = {
    TriageRule.REJECTS_RISE: "bold yellow",
    TriageRule.DEAD_LETTERS_RISE: "bold red",
    TriageRule.BACKLOG_RISES: "bold magenta",
}


@click.group(name="pipeline", cls=NounGroup)
def command() -> None:
    """List pipelines, with what their failures mean."""


@command.command(name="list", epilog=pipe_epilog("pipeline", COLUMNS))
@on_application
@json_option("pipeline list")
def list_pipelines(app: Windlass, as_json: bool) -> None:
    """List pipelines with what is open, done, rejected and dead, and the triage rule that applies.

    Those of the application, and those that its workers or open executions know; executions of all tenants. Counts of
    the last hour stand before those of the hour before, in parentheses, and stop at 10,000. DLQ/h counts executions
    that failed for good. Backlog: items of publications that wait to become executions, now and an hour ago. Stranded:
    open executions that were begun with other steps than the application declares. Waiting: steps and items that wait
    for answers from outside.

    \b
        windlass pipeline list
    """
    found = app.executions.overview()
    if as_json:
        write_items([_as_json(one) for one in found])
    elif not found:
        note("there is no pipeline: none is declared in the application, and no worker has run one")
    else:
        table(COLUMNS, [_row(one) for one in found])
        if drawn():
            _draw_rules(found)


def _as_json(summary: PipelineSummary) -> dict[str, Any]:
    fields = {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)}
    return {**fields, "triage": summary.triage}


def _row(summary: PipelineSummary) -> list[Cell]:
    newest = summary.versions[-1]
    steps = str(len(newest.steps)) if newest.steps else "?"
    return [
        Cell(summary.name),
        Cell(", ".join(version.version for version in summary.versions)),
        Cell(steps),
        Cell(f"{summary.open:,}{'+' if summary.open_bounded else ''}", plain=str(summary.open)),
        _hours(summary.succeeded, ""),
        _hours(summary.rejected, "bold yellow"),
        _hours(summary.dead, "bold red"),
        _backlog(summary.backlog),
        Cell(f"{summary.stranded:,}" if summary.stranded else "", "bold yellow", plain=str(summary.stranded)),
        Cell(f"{summary.waiting:,}" if summary.waiting else "", "magenta", plain=str(summary.waiting)),
        Cell("", plain=summary.triage),
    ]


def _backlog(count: HourlyCount) -> Cell:
    return _hours(count, "bold magenta") if count.last or count.before else Cell("", plain="0 (0)")


def _hours(count: HourlyCount, rising: str) -> Cell:
    arrow = "↑ " if count.rises else "↓ " if count.falls else ""
    last = f"{count.last:,}{'+' if count.last_bounded else ''}"
    before = f"{count.before:,}{'+' if count.before_bounded else ''}"
    return Cell(f"{arrow}{last} ({before})", rising if count.rises else "", plain=f"{last} ({before})".replace(",", ""))


def _draw_rules(found: Sequence[PipelineSummary]) -> None:
    """Write the rules that apply below the table, with the command that shows more."""
    from rich.text import Text

    screen = console()
    screen.print()
    rising = [one for one in found if TriageRule.NOTHING_RISES not in one.rules]
    width = max((len(visible(one.name)) for one in rising), default=0)
    for one in rising:
        for number, rule in enumerate(one.rules):
            name = visible(one.name).ljust(width) if number == 0 else " " * width
            screen.print(
                Text.assemble((f"{name}  ", "bold"), (rule.words, RULE_STYLES[rule]), (f"  {NEXT[rule]}", "dim")),
                soft_wrap=True,
            )
    if not rising:
        screen.print(Text(TriageRule.NOTHING_RISES.words, "green"))
    elif len(rising) < len(found):
        screen.print(Text(f"of the others {TriageRule.NOTHING_RISES.words}", "dim"))
    stranded = sum(one.stranded for one in found)
    if stranded:
        note(f"{stranded:,} stranded: windlass execution list --stranded")
