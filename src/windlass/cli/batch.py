"""`windlass batch`: list batches with their progress, follow one, and move it with all its children."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.confirmation import confirm
from windlass.cli.groups import NounGroup
from windlass.cli.job.moves import CODES, each_job, some_ids, why_not_canceled, why_not_paused
from windlass.cli.output import console, drawn, facts, write_items, write_json, write_line
from windlass.cli.pages import show_page
from windlass.cli.parameters import cursor_option, json_option, limit_option, on_application, yes_option
from windlass.cli.short_ids import full_id, full_ids, job_id
from windlass.cli.tables import STATUS_STYLES, Cell, Column, moment_cell, pipe_epilog
from windlass.domain.batch import BATCH_TARGET, BatchProgress
from windlass.domain.control_characters import visible
from windlass.domain.job import Job
from windlass.domain.states import TERMINAL, JobStatus
from windlass.errors import JobNotFoundError
from windlass.runtime.verbs import drive, sleep

if TYPE_CHECKING:
    from rich.text import Text

COLUMNS: Final = (
    Column("id", lead=True),
    Column("status", lead=True),
    Column("name", lead=True),
    Column("total", right=True),
    Column("completed", right=True),
    Column("failed", right=True),
    Column("progress"),
    Column("left", right=True),
    Column("enqueued", right=True),
)
BAR: Final = 20
"""Width of a progress bar, in characters."""
INTERVAL: Final = 0.5
"""Seconds between two reads with --watch."""
SHOW_CODES: Final = "Exit codes: 0; with --watch 1 if the batch failed or was canceled; 1 if there is no such batch."


@click.group(name="batch", cls=NounGroup)
def command() -> None:
    """List batches, follow, cancel, pause, resume and retry them."""


@command.command(name="list", epilog=pipe_epilog("batch", COLUMNS))
@on_application
@limit_option(20, "Batches in a page.")
@cursor_option
@json_option("batch list")
def list_batches(app: Windlass, limit: int, cursor: str | None, as_json: bool) -> None:
    """List batches with their progress, newest first.

    Left: how long the rest will take at the rate so far.

    \b
        windlass batch list
    """
    page = app.find(target=BATCH_TARGET, cursor=cursor, limit=limit)
    if as_json:
        write_items([_as_json(app, job) for job in page.items], page.next_cursor)
        return
    show_page(app, page, COLUMNS, lambda job, now: _row(job, _progress(app, job), now), "batches", cursor)


@command.command(name="show", epilog=SHOW_CODES)
@on_application
@click.argument("batch", metavar="ID", callback=job_id)
@click.option("--watch", "-w", is_flag=True, show_envvar=True, help="Follow the batch until it has ended.")
@json_option("batch show")
def show(app: Windlass, batch: str, watch: bool, as_json: bool) -> None:
    """Show a batch, its progress and what it waits for.

    \b
        windlass batch show 0198c0de-0000-7000-8000-000000000001
        windlass batch show --watch 0198c0de-0000-7000-8000-000000000001
    """
    job = _batch(app, full_id(app, batch))
    if watch:
        _watch(app, job, as_json=as_json)
    elif as_json:
        write_json(_as_json(app, job))
    else:
        progress, now = _progress(app, job), app.parts.clock.now()
        rows = [
            ("id", str(job.id)),
            ("status", job.status.value),
            ("progress", _line(progress)),
            ("left", _left(job, progress, now) or "-"),
            ("enqueued", phrases.utc(job.created_at)),
        ]
        if job.status not in TERMINAL:
            rows.append(("waits", app.explain(job.id).message))
        facts(_shown(job), rows, {"status": STATUS_STYLES[job.status]})


@command.command(name="cancel", epilog=CODES)
@on_application
@some_ids
@yes_option
def cancel(app: Windlass, ids: list[str], yes: bool) -> None:
    """Cancel batches with all children that have not ended, running ones too. Asks for confirmation.

    \b
        windlass batch cancel 0198c0de-0000-7000-8000-000000000001
    """
    ids = _batches(app, ids)
    what = f"batch {ids[0]}" if len(ids) == 1 else f"{len(ids)} batches"
    confirm(f"Cancel {what} and all children in {app.database.description}?", yes=yes)
    each_job(app, ids, app.cancel, "canceled", why_not_canceled)


@command.command(name="pause", epilog=CODES)
@on_application
@some_ids
def pause(app: Windlass, ids: list[str]) -> None:
    """Hold the children of batches that wait, and those still to be stored. What runs goes on.

    \b
        windlass batch pause 0198c0de-0000-7000-8000-000000000001
    """
    each_job(app, _batches(app, ids), app.pause, "paused", why_not_paused)


@command.command(name="resume", epilog=CODES)
@on_application
@some_ids
def resume(app: Windlass, ids: list[str]) -> None:
    """Let the paused children of batches run again.

    \b
        windlass batch resume 0198c0de-0000-7000-8000-000000000001
    """
    each_job(app, _batches(app, ids), app.resume, "resumed", lambda status: f"it is not paused, but {status}")


@command.command(name="retry", epilog=CODES)
@on_application
@some_ids
def retry(app: Windlass, ids: list[str]) -> None:
    """Start the failed children of batches over. A batch that had failed is live again.

    \b
        windlass batch retry 0198c0de-0000-7000-8000-000000000001
    """
    each_job(
        app, _batches(app, ids), app.retry, "retried", lambda status: f"it is {status} and has no failed child to retry"
    )


def _batches(app: Windlass, ids: list[str]) -> list[str]:
    """Return full ids, all of them of batches."""
    return [str(_batch(app, one).id) for one in full_ids(app, ids)]


def _batch(app: Windlass, batch: str) -> Job:
    job = app.get(batch)
    if job.target != BATCH_TARGET:
        raise click.ClickException(f"job {batch} is no batch but {job.target}; see `windlass job show {batch}`")
    return job


def _progress(app: Windlass, job: Job) -> BatchProgress | None:
    try:
        return app.batch_handle(job.id).progress()
    except JobNotFoundError:  # purged since
        return None


def _name(job: Job) -> str:
    return str(job.args[0]) if job.args else ""


def _shown(job: Job) -> str:
    """Return the name of a batch on one line, without control characters."""
    return visible(" ".join(_name(job).split()))


def _as_json(app: Windlass, job: Job) -> dict[str, Any]:
    fields = {"id": job.id, "name": _name(job), "status": job.status, "created_at": job.created_at}
    return {**fields, "finished_at": job.finished_at, "progress": _progress(app, job)}


def _row(job: Job, progress: BatchProgress | None, now: datetime) -> list[Cell]:
    return [
        Cell(str(job.id)),
        Cell(job.status.value, STATUS_STYLES[job.status]),
        Cell(_shown(job)),
        *(Cell(f"{count:,}", plain=str(count)) for count in _counts(progress)),
        Cell(bar(progress), plain="" if progress is None else f"{progress.percent:.1f}"),
        Cell(_left(job, progress, now)),
        moment_cell(job.created_at, now),
    ]


def _counts(progress: BatchProgress | None) -> tuple[int, int, int]:
    return (0, 0, 0) if progress is None else (progress.total, progress.completed, progress.failed)


def bar(progress: BatchProgress | None) -> str:
    """Return a progress bar as text."""
    if progress is None:
        return ""
    filled = int(BAR * progress.percent / 100)
    return f"{'█' * filled}{'░' * (BAR - filled)} {progress.percent:3.0f} %"


def forecast(progress: BatchProgress, elapsed: float) -> float | None:
    """Return in how many seconds the stored children will have ended at the rate so far; None if not known."""
    ended = progress.completed + progress.failed
    if not ended or elapsed <= 0 or ended >= progress.total:
        return None
    return elapsed / ended * (progress.total - ended)


def _left(job: Job, progress: BatchProgress | None, now: datetime) -> str:
    if progress is None or job.status in TERMINAL:
        return ""
    seconds = forecast(progress, (now - job.created_at) / timedelta(seconds=1))
    return "" if seconds is None else phrases.span(int(seconds * 1000))


def _line(progress: BatchProgress | None) -> str:
    if progress is None:
        return "unknown"
    ended = f"{progress.completed:,} completed, {progress.failed:,} failed of {progress.total:,}"
    return f"{bar(progress)}  {ended}" if drawn() else f"{progress.percent:.1f} %, {ended}"


def _watch(app: Windlass, job: Job, *, as_json: bool) -> None:
    """Follow a batch; at a terminal one line that changes, elsewhere a line for each change."""
    if drawn() and not as_json:
        from rich.live import Live

        with Live(console=console(), refresh_per_second=4) as live:
            job = _follow(app, job, lambda found, progress: live.update(_drawn(found, progress, app.parts.clock.now())))
    else:
        job = _follow(app, job, lambda found, progress: _written(app, found, progress, as_json=as_json))
    if job.status is not JobStatus.SUCCEEDED:
        raise SystemExit(1)


def _follow(app: Windlass, job: Job, show_it: Any) -> Job:
    before = None
    while True:
        job, progress = app.get(job.id), _progress(app, job)
        if (job.status, progress) != before:
            show_it(job, progress)
            before = (job.status, progress)
        if job.status in TERMINAL:
            return job
        drive(sleep(INTERVAL))


def _written(app: Windlass, job: Job, progress: BatchProgress | None, *, as_json: bool) -> None:
    if as_json:
        write_json(_as_json(app, job), indent=0)
    else:
        write_line(f"{job.id}\t{job.status.value}\t{_line(progress)}")


def _drawn(job: Job, progress: BatchProgress | None, now: datetime) -> Text:
    from rich.text import Text

    left = _left(job, progress, now)
    return Text.assemble(
        (f"{_shown(job)}  ", "bold"),
        (job.status.value, STATUS_STYLES[job.status]),
        f"  {_line(progress)}",
        f"  {left} left" if left else "",
    )
