"""`windlass job show`: everything about one job."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.output import console, drawn, facts, json_text, note, write_json, write_line
from windlass.cli.parameters import json_option, on_application
from windlass.cli.short_ids import full_id, job_id
from windlass.cli.tables import STATUS_STYLES, Cell, Column, moment_cell, table
from windlass.domain.control_characters import indented
from windlass.domain.execution import is_execution, is_part
from windlass.domain.job import Attempt, Job
from windlass.domain.progress import Progress
from windlass.domain.states import JobStatus
from windlass.submission.error_text import short

HISTORY: Final = (
    Column("attempt", right=True, lead=True),
    Column("outcome", lead=True),
    Column("started", lead=True),
    Column("waited", right=True),
    Column("ran", right=True),
    Column("node"),
    Column("error", rest=True),
)
OUTCOME_STYLES: Final = {"succeeded": "green", "failed": "bold red", "retried": "yellow", "lost": "magenta"}
_BELOW_STATUS: Final = 2
STYLES: Final = {"error": "red", "progress": "blue"}


@click.command(name="show")
@on_application
@click.argument("job", metavar="ID", callback=job_id)
@json_option("job show")
def command(app: Windlass, job: str, as_json: bool) -> None:
    """Show all fields of a job, and its attempts.

    \b
        windlass job show 0198c0de-0000-7000-8000-000000000001
    """
    job = full_id(app, job)
    found, history = app.get(job), app.history(job)
    waits_for = app.explain(job).message if found.status is JobStatus.WAITING else None
    if as_json:
        fields = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
        write_json({**fields, **({} if waits_for is None else {"waits_for": waits_for}), "history": history})
        return
    now = app.parts.clock.now()
    described = list(_described(found, now))
    if waits_for is not None:
        described.insert(_BELOW_STATUS, ("waits for", waits_for))
    facts(call(found), described, {**STYLES, "status": STATUS_STYLES[found.status]})
    if history:
        heading("history")
        table(HISTORY, [attempt_row(attempt, now) for attempt in history])
        _last_traceback(history)
    shown_as = execution_of(found)
    if shown_as is not None:
        what = "items of an execution" if is_part(found.target) else "an execution"
        note(f"it runs {what}: windlass execution show {shown_as}")


def execution_of(job: Job) -> UUID | None:
    """Return the execution that a job belongs to: its main job has the same id, its parts are children of that."""
    if is_execution(job.target):
        return job.id
    return job.parent_id if is_part(job.target) else None


def call(job: Job) -> str:
    """Return the call of the job as source text."""
    arguments = [short(value) for value in job.args]
    arguments += [f"{name}={short(value)}" for name, value in job.kwargs.items()]
    return f"{job.target}({', '.join(arguments)})"


def _described(job: Job, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield all fields of the job; those it does not have are left out."""
    for label, value in _values(job):
        if isinstance(value, datetime):
            yield label, f"{phrases.local(value)} ({phrases.distance(value, now)})" if drawn() else phrases.utc(value)
        elif value:
            yield label, value


def _values(job: Job) -> Iterator[tuple[str, str | datetime | None]]:
    yield "id", str(job.id)
    yield "status", f"{job.status}{f' ({job.reason})' if job.reason else ''}"
    yield "paused from", job.paused_from
    yield "progress", _progress(job.progress)
    yield "error", job.error
    yield "arguments", json_text(job.args) if job.args else None
    yield "keywords", json_text(job.kwargs) if job.kwargs else None
    yield "result", None if job.result is None else json_text(job.result)
    yield "queue", job.queue
    yield "priority", phrases.priority(job.priority)
    yield "attempts", f"{job.attempts} of {job.max_retries + 1}"
    yield "crashes", str(job.crash_count) if job.crash_count else None
    yield "enqueued", job.created_at
    yield "deadline" if job.status is JobStatus.WAITING else "due", job.due_at
    yield "picked", job.picked_at
    yield "started", job.started_at
    yield "finished", job.finished_at
    yield "waited", None if job.wait_ms is None else phrases.span(job.wait_ms)
    yield "ran", None if job.run_ms is None else phrases.span(job.run_ms)
    yield "node", job.node
    yield "tags", ", ".join(job.tags)
    yield "params", json_text(job.params) if job.params else None
    yield "business key", job.business_key
    yield "idempotency key", job.idempotency_key
    yield "correlation id", job.correlation_id
    yield "resource", job.resource
    yield "circuit", job.circuit
    for label, other in (("parent", job.parent_id), ("batch", job.batch_id), ("superseded by", job.superseded_by)):
        yield label, None if other is None else str(other)
    yield "version", str(job.version)


def _progress(value: Progress | None) -> str | None:
    if value is None:
        return None
    text = phrases.progress(value)
    return text if value.percent is None or not drawn() else f"{phrases.bar(value.percent)}  {text}"


def attempt_row(attempt: Attempt, now: datetime) -> list[Cell]:
    """Return an attempt as a line of the table."""
    started = attempt.started_at or attempt.picked_at or attempt.ended_at
    return [
        Cell(str(attempt.number)),
        Cell(attempt.outcome, OUTCOME_STYLES.get(attempt.outcome, "")),
        moment_cell(started, now),
        Cell("" if attempt.wait_ms is None else phrases.span(attempt.wait_ms)),
        Cell("" if attempt.run_ms is None else phrases.span(attempt.run_ms)),
        Cell(attempt.node or ""),
        Cell(phrases.first_line(attempt.error), "red"),
    ]


def _last_traceback(history: Sequence[Attempt]) -> None:
    """Write the traceback of the attempt that failed last."""
    failed = [attempt for attempt in history if attempt.traceback]
    if failed:
        heading(f"traceback of attempt {failed[-1].number}")
        traceback_lines(failed[-1].traceback or "")


def traceback_lines(text: str) -> None:
    """Write a traceback, indented: its message may have lines of its own."""
    write_line(f"    {indented(text.rstrip())}")


def heading(text: str) -> None:
    """Write a heading between two parts."""
    if drawn():
        console().print(f"\n[bold]{text}")
    else:
        write_line(f"{text}:")
