"""`windlass job explain`: why a job is not running."""

from __future__ import annotations

import click

from windlass.app import Windlass
from windlass.cli import phrases
from windlass.cli.output import note, write_json, write_line
from windlass.cli.parameters import json_option, on_application
from windlass.cli.short_ids import full_id, job_id
from windlass.domain.execution import is_execution


@click.command(name="explain")
@on_application
@click.argument("job", metavar="ID", callback=job_id)
@json_option("job explain")
def command(app: Windlass, job: str, as_json: bool) -> None:
    """Explain why a job is not running: the first thing that holds it back.

    \b
        windlass job explain 0198c0de-0000-7000-8000-000000000001
    """
    job = full_id(app, job)
    found = app.explain(job)
    if as_json:
        write_json(found)
        return
    until = "" if found.until is None else f", until {phrases.utc(found.until)}"
    write_line(f"{found.code}: {found.message}{until}")
    if is_execution(app.get(job).target):
        note(f"it runs an execution: windlass execution explain {job}")
