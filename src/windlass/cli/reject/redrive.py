"""`windlass reject redrive`: items run again, each in a new execution that begins at its step."""

from __future__ import annotations

from typing import Final

import click

from windlass.app import Windlass
from windlass.cli.confirmation import confirm
from windlass.cli.output import note, write_json, write_line
from windlass.cli.parameters import dry_run_option, json_option, limit_option, on_application, yes_option
from windlass.cli.reject.filters import reject_filters
from windlass.client.redrive_order import MOST
from windlass.client.reject_filters import RejectFiltersDict
from windlass.domain.reject import RejectRedrive

CODES: Final = "Exit codes: 0 all were re-driven, or had been before; 1 some were not; 2 wrong usage."


@click.command(name="redrive", epilog=CODES)
@on_application
@reject_filters
@limit_option(100, "How many at most; those that were rejected first go first.", MOST)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    show_envvar=True,
    help="Items per second; no limit if not given.",
)
@dry_run_option("Say which it would be, and touch nothing.")
@click.option(
    "--note",
    "text",
    default="",
    metavar="TEXT",
    envvar="WINDLASS_REJECT_REDRIVE_NOTE",
    show_envvar=True,
    help="Kept in the audit log.",
)
@yes_option
@json_option("reject redrive")
def command(
    app: Windlass,
    filters: RejectFiltersDict,
    limit: int,
    rate: float | None,
    dry_run: bool,
    text: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Run items of rejects that fit every filter given again, and that were not re-driven yet.

    Each enters its own step of a new execution, keyed by its fingerprint: the same item does not run twice. This needs
    a pipeline that keeps its items (include_payload), and its definition in this application. In batches of at most
    100, each a transaction with its entry in the audit log. Fix the cause first.

    \b
        windlass reject redrive --pipeline orders --error-class ConnectionError --dry-run
        windlass reject redrive --fingerprint 2c26b46b68ff… --limit 1000 --rate 20 --note "prices are back"
    """
    found = app.rejects.redrive(limit=limit, dry_run=True, **filters)
    if dry_run:
        _show_selected(found, as_json=as_json)
        return
    if not found.selected:
        note("no rejects fit")
        return
    confirm(f"Re-drive {rejects(found.selected)} in {app.database.description}?", yes=yes)
    done = app.rejects.redrive(limit=limit, rate=rate, note=text, **filters)
    if as_json:
        write_json(done)
    else:
        _report(done)
    if done.skipped:
        raise SystemExit(1)


def rejects(count: int) -> str:
    """Return a number of rejects as text."""
    return f"{count:,} reject{'' if count == 1 else 's'}"


def _show_selected(found: RejectRedrive, *, as_json: bool) -> None:
    if as_json:
        write_json(found)
        return
    for reject in found.ids:
        why = found.skipped.get(reject)
        write_line(str(reject) if why is None else f"{reject}\tcannot be re-driven: {why}")
    note(f"{rejects(found.selected - len(found.skipped))} would be re-driven")


def _report(done: RejectRedrive) -> None:
    write_line(f"re-driven {rejects(done.redriven)}")
    for execution in done.ids:
        write_line(f"execution {execution}")
    if done.duplicates:
        note(f"{rejects(done.duplicates)} had been re-driven before, by another reject of the same item")
    for reject, why in done.skipped.items():
        write_line(f"{reject}\tnot re-driven: {why}")
