"""`windlass dlq show`: one dead letter, its attempts, and what to do first."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.dlq.repeated_steps import failed_step
from windlass.cli.job.show import HISTORY, attempt_row, heading, traceback_lines
from windlass.cli.output import drawn, facts, write_json
from windlass.cli.parameters import json_option, on_application
from windlass.cli.short_ids import full_id, job_id
from windlass.cli.tables import table
from windlass.domain.dead_letter import JOB, PIPELINE, TENANT, DeadLetter, about
from windlass.errors import JobStateError


@click.command(name="show")
@on_application
@click.argument("job", metavar="ID", callback=job_id)
@json_option("dlq show")
def command(app: Windlass, job: str, as_json: bool) -> None:
    """Show why a job or an execution failed for good, every attempt at it, and what to do first.

    Of an execution also its tenant, the step that failed, and the hash of its definition. --json writes every field of
    the envelope.

    \b
        windlass dlq show 0198c0de-0000-7000-8000-000000000001
    """
    job = full_id(app, job)
    letter, history = _letter(app, job), app.history(job)
    if as_json:
        fields = {field.name: getattr(letter, field.name) for field in dataclasses.fields(letter)}
        write_json({**fields, "first_action": letter.first_action, "history": history})
        return
    now = app.parts.clock.now()
    died = letter.created_at
    when = f"{phrases.local(died)} ({phrases.distance(died, now)})" if drawn() else phrases.utc(died)
    styles = {"error": "red", "first action": "bold"}
    rows = [("id", str(letter.job_id)), ("died", when), *_execution_rows(app, letter), *_rows(letter)]
    facts(letter.resource_name, [(label, value) for label, value in rows if value], styles)
    if history:
        heading("history")
        table(HISTORY, [attempt_row(attempt, now) for attempt in history])
    if letter.traceback:
        heading("traceback")
        traceback_lines(letter.traceback)


def _letter(app: Windlass, job: str) -> DeadLetter:
    try:
        return app.dead_letters.get(job)
    except JobStateError:
        status = app.get(job).status
        raise click.ClickException(
            f"job {job}: it is not a dead letter, but {status}; look at it with: windlass job show {job}"
        ) from None


def _execution_rows(app: Windlass, letter: DeadLetter) -> Iterator[tuple[str, str]]:
    """Yield where an execution failed; a job has nothing of that."""
    if letter.resource_type == PIPELINE:
        yield "tenant", letter.tenant_id
        yield "pipeline", letter.resource_name
        yield "step", failed_step(app, letter)
        yield "definition hash", letter.definition_hash or ""
        yield "execution key", letter.execution_key or ""


def _rows(letter: DeadLetter) -> Iterator[tuple[str, str]]:
    """Yield the rows that help to decide.

    Fields that are the same for every job, or repeat its id, are in the JSON only.
    """
    yield "reason", letter.terminal_reason
    yield "meaning", about(letter.terminal_reason).meaning
    yield "error", letter.error_message
    yield "fingerprint", letter.fingerprint
    yield "retries", str(letter.retries_observed)
    yield "retryable", "yes" if letter.retryable else "no"
    yield "host", letter.host or ""
    yield "correlation id", letter.correlation_id or ""
    yield "idempotency key", (letter.execution_key or "") if letter.resource_type == JOB else ""
    yield "first action", letter.first_action
    yield "to start it over", _start_over(letter)
    yield "to re-drive its kind", f"windlass dlq redrive --fingerprint {letter.fingerprint} --dry-run"


def _start_over(letter: DeadLetter) -> str:
    """Return the command that starts over this one alone."""
    if letter.resource_type == JOB:
        return f"windlass job retry {letter.job_id}"
    tenant = "" if letter.tenant_id == TENANT else f" --tenant {shlex.quote(letter.tenant_id)}"
    return f"windlass execution redrive {letter.job_id}{tenant} --dry-run"
