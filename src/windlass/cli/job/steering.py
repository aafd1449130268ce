"""`windlass job cancel|pause|resume|retry`: a line per job with what happened, or why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.asking import confirm
from windlass.cli.output import console, drawn, note, say
from windlass.cli.parameters import filter_options, job_ids, limit_option, on_application, yes_option
from windlass.client.filters import JobFilters
from windlass.domain.states import TERMINAL, JobStatus
from windlass.errors import DuplicateBusinessKeyError, JobNotFoundError, NotAuthorizedError

CODES: Final = "Exit codes: 0 done for every job, 1 refused for at least one, 2 wrong usage."

some_ids = click.argument("ids", metavar="ID…", nargs=-1, required=True, callback=job_ids)
ids_or_none = click.argument("ids", metavar="[ID…]", nargs=-1, callback=job_ids)


@click.command(name="cancel", epilog=CODES)
@on_application
@ids_or_none
@click.option("--tag", "-t", show_envvar=True, help="Every job with this tag that has not ended.")
@yes_option
def cancel(app: Windlass, ids: list[str], tag: str | None, yes: bool) -> None:
    """End jobs that have not ended, running ones too.

    A running job is told, wherever it runs. Before several jobs or a whole tag are canceled, you are asked.

    \b
        windlass job cancel 0198c0de-0000-7000-8000-000000000001
        windlass job cancel --tag import --yes
    """
    if bool(ids) == (tag is not None):
        raise click.UsageError("name jobs by their ids, or by --tag")
    store = app.database.description
    if tag is not None:
        confirm(f"Cancel every job tagged {tag} that has not ended, in {store}?", yes=yes)
        say(f"canceled {phrases.jobs(app.cancel_by_tag(tag))}")
        return
    if len(ids) > 1:
        confirm(f"Cancel {phrases.jobs(len(ids))} in {store}?", yes=yes)
    _each(app, ids, app.cancel, "canceled", _why_not_canceled)


@click.command(name="pause", epilog=CODES)
@on_application
@some_ids
def pause(app: Windlass, ids: list[str]) -> None:
    """Hold jobs that wait, or dead letters, until they are resumed.

    \b
        windlass job pause 0198c0de-0000-7000-8000-000000000001
    """
    _each(app, ids, app.pause, "paused", _why_not_paused)


@click.command(name="resume", epilog=CODES)
@on_application
@some_ids
def resume(app: Windlass, ids: list[str]) -> None:
    """Put paused jobs back to the state they were paused from.

    \b
        windlass job resume 0198c0de-0000-7000-8000-000000000001
    """
    _each(app, ids, app.resume, "resumed", lambda status: f"it is not paused, but {status}")


@click.command(name="retry", epilog=CODES)
@on_application
@ids_or_none
@click.option(
    "--all-failed", is_flag=True, show_envvar=True, help="The newest dead letters that fit the filters, up to --limit."
)
@filter_options
@limit_option(100, "With --all-failed: how many at most.")
@click.pass_context
def retry(
    context: click.Context, /, app: Windlass, ids: list[str], all_failed: bool, filters: JobFilters, limit: int
) -> None:
    """Start dead letters over, with all their retries, due now.

    With --all-failed it is all of those found or, if another job holds the business key of one, none.

    \b
        windlass job retry 0198c0de-0000-7000-8000-000000000001
        windlass job retry --all-failed --queue billing --since 2h
    """
    if bool(ids) == all_failed:
        raise click.UsageError("name jobs by their ids, or say --all-failed", context)
    if all_failed:
        count = app.retry_many(limit, **filters)
        say(f"retried {phrases.jobs(count)}")
        if count == limit:
            note("there may be more: run it again")
        return
    if any(value is not None for value in filters.values()):
        raise click.UsageError("filters belong to --all-failed; ids say all there is to say", context)
    _each(app, ids, app.retry, "retried", lambda status: f"only a FAILED job can be, and it is {status}")


def _each(
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
            _tell(job, done, "green")
        else:
            refused += 1
            _tell(job, f"not {done}: {reason or _reason(app, job, why_not)}", "yellow")
    if refused:
        raise SystemExit(1)


def _reason(app: Windlass, job: str, why_not: Callable[[JobStatus], str]) -> str:
    """As far as one can see now: it may have moved on since it was refused."""
    try:
        return why_not(app.get(job).status)
    except JobNotFoundError:
        return "no job has this id"


def _why_not_canceled(status: JobStatus) -> str:
    return f"it has ended ({status})" if status in TERMINAL else f"it is {status} now"


def _why_not_paused(status: JobStatus) -> str:
    if status is JobStatus.RUNNING:
        return "it is running; cancel it, or let it end"
    return f"it has ended ({status})" if status in TERMINAL else f"it is {status} now"


def _tell(job: str, text: str, style: str) -> None:
    if drawn():
        from rich.text import Text

        console().print(Text.assemble(job, "  ", (text, style)), soft_wrap=True)
    else:
        say(f"{job}\t{text}")
