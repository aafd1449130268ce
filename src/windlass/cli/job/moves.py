"""`windlass job cancel|pause|resume|retry`: a line per job with what happened, or why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.confirmation import confirm
from windlass.cli.output import console, drawn, note, write_line
from windlass.cli.parameters import dry_run_option, filter_options, limit_option, on_application, yes_option
from windlass.cli.short_ids import MAX_SHOWN, full_ids, job_ids
from windlass.client.filters import MAX_IN_A_PAGE, JobFilters, Page
from windlass.domain.control_characters import visible
from windlass.domain.job import Job
from windlass.domain.states import TERMINAL, JobStatus
from windlass.errors import DuplicateBusinessKeyError, JobNotFoundError, NotAuthorizedError

CODES: Final = "Exit codes: 0 done for every job, 1 refused for at least one, 2 wrong usage."

some_ids = click.argument("ids", metavar="ID…", nargs=-1, required=True, callback=job_ids)
ids_or_none = click.argument("ids", metavar="[ID…]", nargs=-1, callback=job_ids)


@click.command(name="cancel", epilog=CODES)
@on_application
@ids_or_none
@click.option("--tag", "-t", show_envvar=True, help="Every job with this tag that has not ended.")
@dry_run_option("Say which it would be, and touch nothing.")
@yes_option
def cancel(app: Windlass, ids: list[str], tag: str | None, dry_run: bool, yes: bool) -> None:
    """Cancel jobs that have not ended, running ones too. Asks for confirmation.

    A running job is notified, wherever it runs. It cannot be undone.

    \b
        windlass job cancel 0198c0de-0000-7000-8000-000000000001
        windlass job cancel --tag import --dry-run
        windlass job cancel --tag import --yes
    """
    if bool(ids) == (tag is not None):
        raise click.UsageError("name jobs by their ids, or by --tag")
    if tag is not None:
        _cancel_tagged(app, tag, dry_run=dry_run, yes=yes)
        return
    ids = full_ids(app, ids)
    if dry_run:
        each_job(app, ids, lambda job: not _ended(app, job), "would be canceled", why_not_canceled)
        return
    what = f"job {ids[0]}" if len(ids) == 1 else phrases.jobs(len(ids))
    confirm(f"Cancel {what} in {app.database.description}?", yes=yes)
    each_job(app, ids, app.cancel, "canceled", why_not_canceled)


def _cancel_tagged(app: Windlass, tag: str, *, dry_run: bool, yes: bool) -> None:
    count = app.cancel_by_tag(tag, dry_run=True)
    if dry_run:
        page = app.find(tag=tag, limit=MAX_IN_A_PAGE) if count else Page([])
        _sample([job for job in page if job.status not in TERMINAL], count)
        note(f"{phrases.jobs(count)} would be canceled")
        return
    if count:
        confirm(f"Cancel {phrases.jobs(count)} tagged {tag} in {app.database.description}?", yes=yes)
    write_line(f"canceled {phrases.jobs(app.cancel_by_tag(tag) if count else 0)}")


@click.command(name="pause", epilog=CODES)
@on_application
@some_ids
def pause(app: Windlass, ids: list[str]) -> None:
    """Hold jobs that wait, or dead letters, until they are resumed.

    \b
        windlass job pause 0198c0de-0000-7000-8000-000000000001
    """
    each_job(app, full_ids(app, ids), app.pause, "paused", why_not_paused)


@click.command(name="resume", epilog=CODES)
@on_application
@some_ids
def resume(app: Windlass, ids: list[str]) -> None:
    """Put paused jobs back to the state they were paused from.

    \b
        windlass job resume 0198c0de-0000-7000-8000-000000000001
    """
    each_job(app, full_ids(app, ids), app.resume, "resumed", lambda status: f"it is not paused, but {status}")


@click.command(name="retry", epilog=CODES)
@on_application
@ids_or_none
@click.option(
    "--all-failed", is_flag=True, show_envvar=True, help="The newest dead letters that fit the filters, up to --limit."
)
@filter_options
@limit_option(100, "With --all-failed: how many at most.")
@dry_run_option("With --all-failed: say how many it would be, and show some of them.")
@yes_option
@click.pass_context
def retry(
    context: click.Context,
    /,
    app: Windlass,
    ids: list[str],
    all_failed: bool,
    filters: JobFilters,
    limit: int,
    dry_run: bool,
    yes: bool,
) -> None:
    """Start dead letters over, with all their retries, due now.

    --all-failed asks for confirmation, and retries all jobs found or, if another job holds the business key of one,
    none. `windlass dlq redrive` selects by the kind of error, with a rate, and with an entry in the audit log.

    \b
        windlass job retry 0198c0de-0000-7000-8000-000000000001
        windlass job retry --all-failed --queue billing --since 2h --dry-run
    """
    if bool(ids) == all_failed:
        raise click.UsageError("name jobs by their ids, or give --all-failed", context)
    if all_failed:
        _retry_all(app, limit, filters, dry_run=dry_run, yes=yes)
        return
    if any(value is not None for value in filters.values()) or dry_run:
        raise click.UsageError("filters and --dry-run belong to --all-failed; ids need neither", context)
    ids = full_ids(app, ids)
    each_job(app, ids, app.retry, "retried", lambda status: f"only a FAILED job can be, and it is {status}")


def _retry_all(app: Windlass, limit: int, filters: JobFilters, *, dry_run: bool, yes: bool) -> None:
    count = app.retry_many(limit, dry_run=True, **filters)
    if dry_run:
        _sample(app.find(status=JobStatus.FAILED, limit=MAX_SHOWN, **filters).items, count)
        note(f"{phrases.jobs(count)} would be retried")
        return
    if count:
        confirm(f"Retry {phrases.jobs(count)} in {app.database.description}?", yes=yes)
        count = app.retry_many(limit, **filters)
    write_line(f"retried {phrases.jobs(count)}")
    if count == limit:
        note("there may be more: run it again")


def _sample(jobs: Sequence[Job], count: int) -> None:
    """Show some of the jobs that a bulk verb would move."""
    for job in jobs[: min(count, MAX_SHOWN)]:
        write_line(f"{job.id}\t{job.status.value}\t{visible(job.target)}")
    if count > MAX_SHOWN:
        write_line("…")


def each_job(
    app: Windlass,
    ids: Sequence[str],
    move: Callable[[str], bool],
    done: str,
    why_not: Callable[[JobStatus], str],
) -> None:
    """Move one after the other; one that cannot be moved does not stop the rest."""
    refused = 0
    for job in ids:
        try:
            moved, reason = move(job), ""
        except DuplicateBusinessKeyError as error:
            moved, reason = False, f"another job, {error.holder}, holds its business key {error.key!r}"
        except NotAuthorizedError as error:
            moved, reason = False, f"{error.principal} may not {error.action} it: {error.why}"
        if moved:
            print_moved(job, done, "green")
        else:
            refused += 1
            print_moved(job, f"{negated(done)}: {reason or _reason(app, job, why_not)}", "yellow")
    if refused:
        raise SystemExit(1)


def negated(done: str) -> str:
    """Return the reason why a move of a job was refused."""
    return done.replace("would be", "would not be") if done.startswith("would") else f"not {done}"


def _reason(app: Windlass, job: str, why_not: Callable[[JobStatus], str]) -> str:
    """Return why a job was refused, as far as visible now: it may have moved since."""
    try:
        return why_not(app.get(job).status)
    except JobNotFoundError:
        return "no job has this id"


def _ended(app: Windlass, job: str) -> bool:
    try:
        return app.get(job).status in TERMINAL
    except JobNotFoundError:
        return True


def why_not_canceled(status: JobStatus) -> str:
    """Return why a job in this state was not canceled."""
    return f"it has ended ({status})" if status in TERMINAL else f"it is {status} now"


def why_not_paused(status: JobStatus) -> str:
    """Return why a job in this state was not paused."""
    if status is JobStatus.RUNNING:
        return "it is running; cancel it, or let it end"
    if status is JobStatus.WAITING:
        return "it waits for a signal; signal or cancel it"
    return f"it has ended ({status})" if status in TERMINAL else f"it is {status} now"


def print_moved(job: str, text: str, style: str) -> None:
    """Write what became of a job."""
    if drawn():
        from rich.text import Text

        console().print(Text.assemble(job, "  ", (text, style)), soft_wrap=True)
    else:
        write_line(f"{job}\t{text}")
