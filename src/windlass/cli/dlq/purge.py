"""`windlass dlq purge`: delete old dead letters."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.confirmation import confirm
from windlass.cli.dlq.filters import KIND
from windlass.cli.dlq.redrive import letters
from windlass.cli.output import note, write_line
from windlass.cli.parameters import age, dry_run_option, on_application, yes_option
from windlass.cli.short_ids import MAX_SHOWN
from windlass.client.filters import MAX_IN_A_PAGE
from windlass.domain.control_characters import visible


@click.command(name="purge")
@on_application
@click.option(
    "--older-than",
    callback=age,
    metavar="AGE",
    show_envvar=True,
    help="Died longer ago than this: 12h, 90d, 6w. If not given: the setting dead_letters.retention.",
)
@click.option("--kind", "-k", show_envvar=True, **KIND)
@dry_run_option("Say how many it would be, and show some of them.")
@yes_option
def command(app: Windlass, older_than: timedelta | None, kind: str | None, dry_run: bool, yes: bool) -> None:
    """Delete jobs and executions that failed for good long ago, live or archived, with all their data.

    Asks for confirmation. Workers do the same by themselves. It cannot be undone; only idempotency keys of jobs stay.

    \b
        windlass dlq purge --older-than 30d --dry-run
        windlass dlq purge --older-than 30d
    """
    since = timedelta(seconds=app.settings.dead_letters.retention) if older_than is None else older_than
    if dry_run:
        _count(app, app.parts.clock.now() - since, kind)
        return
    which = "dead letter" if kind is None else f"dead letter of kind {kind}"
    confirm(f"Delete every {which} older than {_span(since)} in {app.database.description}?", yes=yes)
    write_line(f"deleted {letters(app.dead_letters.purge(since, kind=kind))}")


def _count(app: Windlass, before: datetime, kind: str | None) -> None:
    """Write how many there are, counted up to a limit, and the latest of them."""
    page = app.dead_letters.find(kind, created_before=before, limit=MAX_IN_A_PAGE)
    for letter in page.items[:MAX_SHOWN]:
        write_line(f"{letter.job_id}\t{phrases.utc(letter.created_at)}\t{visible(letter.resource_name)}")
    count = len(page)
    while page.next_cursor is not None and count < phrases.MAX_COUNTED:
        page = app.dead_letters.find(kind, created_before=before, limit=MAX_IN_A_PAGE, cursor=page.next_cursor)
        count += len(page)
    if count > MAX_SHOWN:
        write_line("…")
    more = "or more " if page.next_cursor is not None else ""
    note(f"{letters(count)} {more}would be deleted")


def _span(age: timedelta) -> str:
    hours, days = age.total_seconds() / 3600, age / timedelta(days=1)
    return f"{days:g} days" if days >= 2 else f"{hours:g} hours"
