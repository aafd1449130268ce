"""`windlass dlq redrive`: dead letters start over, in bounded batches."""

from __future__ import annotations

from typing import Final

import click

from windlass.app import Windlass
from windlass.cli.confirmation import confirm
from windlass.cli.dlq.filters import letter_filters
from windlass.cli.dlq.redrive_progress import counts, live_line
from windlass.cli.dlq.repeated_steps import repeated_steps
from windlass.cli.output import note, write_line
from windlass.cli.parameters import dry_run_option, limit_option, on_application, yes_option
from windlass.client.dead_letter_views import RedriveFilters
from windlass.client.redrive_order import MOST
from windlass.domain.dead_letter import JOB, Redrive

MOST_PLANNED: Final = 100
"""Number of dead letters of which a dry run looks the steps up."""
CODES: Final = "Exit codes: 0 all were re-driven, 1 some were not, 2 wrong usage."


@click.command(name="redrive", epilog=CODES)
@on_application
@letter_filters
@limit_option(100, "How many at most; those that died first go first.", MOST)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    show_envvar=True,
    help="Jobs per second; no limit if not given.",
)
@dry_run_option("Say which it would be, and which steps of executions would be called; touch nothing.")
@click.option(
    "--note",
    "text",
    default="",
    metavar="TEXT",
    envvar="WINDLASS_DLQ_REDRIVE_NOTE",
    show_envvar=True,
    help="Kept in the audit log.",
)
@click.option(
    "--stop-at",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    show_envvar=True,
    help="Stop when more than this share of at least 20 that have ended since failed again; 1 for never.",
)
@click.option(
    "--wait", "-w", is_flag=True, show_envvar=True, help="Return when all have ended, or too many have failed again."
)
@yes_option
def command(
    app: Windlass,
    filters: RedriveFilters,
    limit: int,
    rate: float | None,
    dry_run: bool,
    text: str,
    stop_at: float,
    wait: bool,
    yes: bool,
) -> None:
    """Start dead letters that fit every filter given over, with all their retries, due now.

    In batches of at most 100, each a transaction with its entry in the audit log. Jobs whose business key another job
    holds are skipped. Executions go on at the step that failed; only their unfinished items are run again. Fix the
    cause first, and make sure that the jobs may run twice.

    It shows how many have succeeded and failed again, hand-offs of publications that were suppressed meanwhile, and the
    saturation: of those that are tried again, the share of their retries that is used up. Counts are as of the last
    batch; --wait goes on until all have ended.

    \b
        windlass dlq redrive --fingerprint 8c1f6a2b90d4e377 --limit 10 --dry-run
        windlass dlq redrive --fingerprint 8c1f6a2b90d4e377 --limit 1000 --rate 20 --note "bank is back"
    """
    found = app.dead_letters.redrive(limit, dry_run=True, **filters)
    if dry_run:
        for number, job in enumerate(found.ids):
            write_line(str(job))
            if number < MOST_PLANNED and filters.get("kind") != JOB:
                for line in repeated_steps(app, str(job)):
                    write_line(line)
        note(f"{letters(found.selected)} would be re-driven")
        return
    if not found.selected:
        note("no dead letters fit")
        return
    confirm(f"Re-drive {letters(found.selected)} in {app.database.description}?", yes=yes)
    with live_line(found.selected) as on_progress:
        done = app.dead_letters.redrive(
            limit, rate, stop_at=stop_at, note=text, wait=wait, on_progress=on_progress, **filters
        )
    _report(done)


def letters(count: int) -> str:
    """Return a number of dead letters as text."""
    return f"{count:,} dead letter{'' if count == 1 else 's'}"


def _report(done: Redrive) -> None:
    write_line(f"re-driven {letters(done.redriven)}: {counts(done)}")
    for job, why in done.skipped.items():
        write_line(f"{job}\tnot re-driven: {why}")
    if done.stopped:
        note(f"stopped: {done.stopped}")
    if done.skipped or done.stopped:
        raise SystemExit(1)
