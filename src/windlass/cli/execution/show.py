"""`windlass execution show`: everything about one execution."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.execution.log_lines import LOG, log_rows
from windlass.cli.job.show import heading
from windlass.cli.output import drawn, facts, json_text, note, write_json
from windlass.cli.parameters import json_option, on_application, tenant_option
from windlass.cli.short_ids import full_execution_id, job_id
from windlass.cli.tables import STATUS_STYLES, Cell, Column, moment_cell, table
from windlass.domain.execution import DEAD, ENDED, Execution, ExecutionStatus
from windlass.domain.execution_progress import ExecutionProgress, PartProgress, StageProgress

LONGEST: Final = 1_000
"""Number of characters of a value that are shown."""
BAR: Final = 16
STAGES: Final = (
    Column("stage", right=True, lead=True),
    Column("made by", lead=True),
    Column("ended", lead=True),
    Column("items", right=True),
    Column("done", right=True),
    Column("ready", right=True),
    Column("retrying", right=True),
    Column("waiting", right=True),
    Column("rejected", right=True),
    Column("failed", right=True),
)
PARTS: Final = (
    Column("job", lead=True),
    Column("status", lead=True),
    Column("items", lead=True),
    Column("step"),
    Column("due", right=True),
    Column("node", rest=True),
)
MOST_PARTS: Final = 10
"""Number of parts that are listed."""


@click.command(name="show")
@on_application
@click.argument("execution", metavar="ID", callback=job_id)
@tenant_option
@json_option("execution show")
def command(app: Windlass, execution: str, tenant: str, as_json: bool) -> None:
    """Show all fields of an execution, its items by state, its parts, and its log.

    \b
        windlass execution show 0198c0de-0000-7000-8000-000000000001
    """
    key = full_execution_id(app, execution, tenant)
    found, log = app.executions.get(key, tenant), app.executions.history(key, tenant)
    progress = app.executions.progress(key, tenant)
    waits = None if found.status in ENDED else app.executions.explain(key, tenant).message
    if as_json:
        fields = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
        write_json({**fields, "waits": waits, "progress": progress, "history": log})
        return
    now = app.parts.clock.now()
    title = f"{found.pipeline}@{found.pipeline_version}"
    styles = {"error": "red", "status": STATUS_STYLES[found.status], "rejected": "yellow", "steps": "bold"}
    facts(title, list(_described(found, progress, waits, now)), styles)
    _items(progress, now)
    heading("log")
    table(LOG, log_rows(log, progress.steps, now))
    if found.status in DEAD:
        note(f"start it over: windlass execution redrive {found.id} --dry-run")


def _described(
    execution: Execution, progress: ExecutionProgress, waits: str | None, now: datetime
) -> Iterator[tuple[str, str]]:
    for label, value in _values(execution, progress, waits):
        if isinstance(value, datetime):
            yield label, f"{phrases.local(value)} ({phrases.distance(value, now)})" if drawn() else phrases.utc(value)
        elif value:
            yield label, value


def _values(
    execution: Execution, progress: ExecutionProgress, waits: str | None
) -> Iterator[tuple[str, str | datetime | None]]:
    yield "id", str(execution.id)
    yield "status", execution.status.value
    yield "steps", _steps(execution, progress.steps)
    yield "waits", waits
    yield "error", execution.error_message
    yield "error code", execution.error_code
    yield "input", _shown(execution.input)
    yield "result", None if execution.result is None else _shown(execution.result)
    yield "rejected", f"{execution.rejected:,} items" if execution.rejected else None
    yield "tenant", execution.tenant
    yield "key", execution.key
    yield "attempt", str(execution.attempt)
    yield "submitted", execution.created_at
    yield "updated", execution.updated_at
    yield "due", execution.due_at
    yield "lease until", execution.lease_until
    yield "transition key", execution.transition_key
    yield "correlation id", execution.correlation_id
    yield "definition", execution.definition_hash[:12]
    yield "version", str(execution.row_version)


def _shown(value: Any) -> str:
    text = json_text(value)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text):,} characters; --json shows all)"


def _steps(execution: Execution, names: tuple[str, ...]) -> str:
    """Return the steps with signs: passed, the one that runs or comes next, those to come."""
    passed = execution.status is ExecutionStatus.SUCCEEDED
    if not names:
        return "" if passed else f"at step {execution.cursor}"
    at = "✗" if execution.status in DEAD else "⊘" if execution.status is ExecutionStatus.CANCELED else "▶"
    signs = [
        "✓" if passed or index < execution.cursor else at if index == execution.cursor else "○"
        for index in range(len(names))
    ]
    return "  ".join(f"{sign} {name}" for sign, name in zip(signs, names, strict=True))


def _items(progress: ExecutionProgress, now: datetime) -> None:
    if progress.stages:
        heading("items")
        table(STAGES, [_stage(stage) for stage in progress.stages])
    if progress.parts:
        heading("parts")
        table(PARTS, [_part(part, now) for part in progress.parts[:MOST_PARTS]])
    more = len(progress.parts[MOST_PARTS:])
    others = [f"{more:,} more have jobs"] if more else []
    others += [f"{progress.parts_waiting:,} wait for a job"] if progress.parts_waiting else []
    if others:
        note(f"parts: {', '.join(others)}")


def _stage(stage: StageProgress) -> list[Cell]:
    percent = f"{int(stage.percent)} %"  # 100 % only when all have ended
    filled = int(stage.percent / 100 * BAR) / BAR * 100
    style = "red" if stage.failed else "green" if stage.percent >= 100 else "blue"
    return [
        Cell(str(stage.stage)),
        Cell(stage.step),
        Cell(f"{phrases.bar(filled, BAR)} {percent:>5}", style, plain=percent),
        _number(stage.total, ""),
        _number(stage.done, "green"),
        _number(stage.ready, ""),
        _number(stage.retrying, "yellow"),
        _number(stage.waiting, "magenta"),
        _number(stage.rejected, "yellow"),
        _number(stage.failed, "bold red"),
    ]


def _number(value: int, style: str) -> Cell:
    return Cell(f"{value:,}" if value else "", style, plain=str(value))


def _part(part: PartProgress, now: datetime) -> list[Cell]:
    return [
        Cell(str(part.job_id)),
        Cell(part.status, STATUS_STYLES.get(part.status, "")),
        Cell(part.first if part.first == part.last else f"{part.first} to {part.last or 'the last'}"),
        Cell(part.step),
        moment_cell(part.due_at, now),
        Cell(part.node or ""),
    ]
