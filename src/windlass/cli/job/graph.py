"""`windlass job graph`: the flow of a job with its states, drawn in the terminal or into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import UUID

import click

from windlass.app import Windlass
from windlass.cli.job import graph_svg
from windlass.cli.job.graph_texts import summary
from windlass.cli.job.graph_views import COLUMNS, GraphView, JsonGraphView, graph_view
from windlass.cli.output import write_json, write_line
from windlass.cli.parameters import json_option, on_application
from windlass.cli.short_ids import full_id, job_id
from windlass.cli.tables import pipe_epilog
from windlass.domain.clock import monotonic
from windlass.runtime.verbs import drive, sleep

INTERVAL: Final = 0.3
"""Seconds between two reads; for a large flow twice as long as it takes to read and draw it."""
CODES: Final = (
    "Exit codes: 0; with --watch 1 if a job of the flow failed or was canceled, other than a branch whose case did not "
    "occur; 1 if the job does not exist."
)


@click.command(name="graph", epilog=f"{pipe_epilog('job', COLUMNS)} {CODES}")
@on_application
@click.argument("job", metavar="ID", callback=job_id)
@click.option("--watch", "-w", is_flag=True, show_envvar=True, help="Follow the flow until all its jobs have ended.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    show_envvar=True,
    help="Write the picture to this file.",
)
@json_option("job graph")
def command(app: Windlass, job: str, watch: bool, svg: Path | None, as_json: bool) -> None:
    """Draw the flow of a job with its states.

    Any job of the flow will do. Of a large group some members are shown, those that failed or run rather than others.
    With --watch, --json gives an object per line: the graph, then each job that has changed.

    \b
        windlass job graph 0198c0de-0000-7000-8000-000000000001
        windlass job graph --watch 0198c0de-0000-7000-8000-000000000001
        windlass job graph --svg flow.svg 0198c0de-0000-7000-8000-000000000001
    """
    if svg is not None and (watch or as_json):
        raise click.UsageError("--svg writes one picture; leave out --watch and --json")
    job = full_id(app, job)
    if svg is not None:
        _write_svg(app, job, svg)
    elif watch:
        _watch(app, job, JsonGraphView() if as_json else graph_view(app.parts.clock, UUID(job)))
    elif as_json:
        write_json(app.graph(job))
    else:
        graph_view(app.parts.clock, UUID(job)).over(app.graph(job))


def _write_svg(app: Windlass, job: str, file: Path) -> None:
    graph = app.graph(job)
    try:
        file.write_text(graph_svg.draw(graph, app.parts.clock.now(), focus=UUID(job)), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from None
    write_line(f"{file}\t{summary(graph)}")


def _watch(app: Windlass, job: str, view: GraphView) -> None:
    """Show the flow as it changes, until it has ended."""
    with view:
        while True:
            began = monotonic()
            graph = app.graph(job)
            if graph.ended:
                break
            view.show(graph)
            drive(sleep(max(INTERVAL, 2 * (monotonic() - began))))
    view.over(graph)
    if not graph.succeeded:
        raise SystemExit(1)
