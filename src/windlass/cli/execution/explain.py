"""`windlass execution explain`: why an execution is not running."""

from __future__ import annotations

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.output import write_json, write_line
from windlass.cli.parameters import json_option, on_application, tenant_option
from windlass.cli.short_ids import full_execution_id, job_id
from windlass.domain.control_characters import indented


@click.command(name="explain")
@on_application
@click.argument("execution", metavar="ID", callback=job_id)
@tenant_option
@json_option("execution explain")
def command(app: Windlass, execution: str, tenant: str, as_json: bool) -> None:
    """Explain why an execution is not running: the first thing that holds it, or its items, back.

    \b
        windlass execution explain 0198c0de-0000-7000-8000-000000000001
    """
    found = app.executions.explain(full_execution_id(app, execution, tenant), tenant)
    if as_json:
        write_json(found)
        return
    until = "" if found.until is None else f", until {phrases.utc(found.until)}"
    write_line(f"{found.code}: {indented(found.message)}{until}")
