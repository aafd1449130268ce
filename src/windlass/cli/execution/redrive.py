"""`windlass execution redrive`: a dead execution starts over, under its id."""

from __future__ import annotations

from typing import Final

import click

from windlass.app import Windlass
from windlass.cli.confirmation import confirm
from windlass.cli.job.moves import print_moved
from windlass.cli.output import note, write_json
from windlass.cli.parameters import dry_run_option, json_option, on_application, tenant_option, yes_option
from windlass.cli.short_ids import full_execution_id, job_id
from windlass.cli.tables import Cell, Column, table
from windlass.client.rewinds import RedrivePlan, RepeatedStep
from windlass.domain.execution import DEAD

CODES: Final = (
    "Exit codes: 0 it was re-driven, or could be with --dry-run, 1 it was refused (its state or its version), 2 wrong "
    "usage."
)
COLUMNS: Final = (
    Column("step", lead=True),
    Column("attempts so far", right=True),
    Column("items", right=True),
    Column("effect key", rest=True),
)


@click.command(name="redrive", epilog=CODES)
@on_application
@click.argument("execution", metavar="ID", callback=job_id)
@tenant_option
@click.option("--from-step", metavar="NAME|NUMBER", show_envvar=True, help="Start at this step, not where it failed.")
@click.option("--to-version", metavar="VERSION", show_envvar=True, help="Move it to this version of its pipeline.")
@click.option(
    "--expected-version", type=int, show_envvar=True, help="The version in its log that you have seen; else refuse."
)
@click.option(
    "--note",
    "text",
    default="",
    metavar="TEXT",
    envvar="WINDLASS_EXECUTION_REDRIVE_NOTE",
    show_envvar=True,
    help="Kept in the audit log.",
)
@dry_run_option("Show which steps it would call again, and touch nothing.")
@yes_option
@json_option("execution redrive", "For programs: the plan with --dry-run, else the execution.")
def command(
    app: Windlass,
    execution: str,
    tenant: str,
    from_step: str | None,
    to_version: str | None,
    expected_version: int | None,
    text: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Start a dead execution over, from where it failed or from an earlier step. Asks for confirmation.

    Fix the cause first, and make sure that the steps may run twice: those that --dry-run lists are called again with
    the same effect keys. --to-version also moves an open execution that is stranded.

    \b
        windlass execution redrive 0198c0de-0000-7000-8000-000000000001 --dry-run
        windlass execution redrive 0198c0de-0000-7000-8000-000000000001 --from-step price --note "prices are back"
    """
    key = full_execution_id(app, execution, tenant)
    start = int(from_step) if from_step is not None and from_step.isdecimal() else from_step
    if dry_run:
        _dry_run(app.executions.plan_redrive(key, tenant, from_step=start), to_version, as_json=as_json)
        return
    confirm(f"Re-drive execution {key} in {app.database.description}?", yes=yes)
    done = app.executions.redrive(key, expected_version, text, tenant=tenant, from_step=start, to_version=to_version)
    if as_json:
        write_json(done)
        return
    moved = "" if to_version is None else f", with version {done.pipeline_version}"
    print_moved(key, f"re-driven from step {done.cursor}{moved}", "green")


def _dry_run(plan: RedrivePlan, to_version: str | None, *, as_json: bool) -> None:
    if as_json:
        write_json(plan)
    else:
        table(COLUMNS, [_row(step) for step in plan.steps])
    allowed = plan.status in {status.value for status in DEAD} or (to_version is not None and plan.status == "OPEN")
    if not allowed:
        status = plan.status if plan.status != "OPEN" else "open"
        note(f"execution {plan.execution_id} would not be re-driven: it is {status}, and neither DLQ nor FAILED")
        raise SystemExit(1)
    if not as_json:
        again = sum(1 for step in plan.steps if step.attempts)
        what = f"{again} of {len(plan.steps)} steps would be called again" if again else "no step was called before"
        note(f"{what}; version {plan.row_version} (for --expected-version)")


def _row(step: RepeatedStep) -> list[Cell]:
    key = f"{step.effect_key}:ITEM" if step.per_item else step.effect_key
    return [
        Cell(step.name),
        Cell(
            str(step.attempts) if step.attempts else "none", "yellow" if step.attempts else "", plain=str(step.attempts)
        ),
        Cell("" if step.items is None else f"{step.items:,}", plain="" if step.items is None else str(step.items)),
        Cell(key),
    ]
