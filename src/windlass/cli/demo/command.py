"""`windlass demo`: needs nothing but this package; a SQLite file in a temporary folder, gone afterwards."""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path

import click

from windlass._version import __version__
from windlass.cli.demo.batch_scene import batch
from windlass.cli.demo.control import steering
from windlass.cli.demo.crash import crash
from windlass.cli.demo.failures import dead_letters, open_circuit
from windlass.cli.demo.flow_scene import flow
from windlass.cli.demo.pipeline_scene import pipeline
from windlass.cli.demo.presenter import Presenter
from windlass.cli.demo.scenes import first_program, priorities, retries
from windlass.cli.demo.schedule_scene import schedule
from windlass.cli.demo.shop import open_shop
from windlass.cli.demo.summary import summary
from windlass.cli.output import facts
from windlass.domain.clock import monotonic


@click.command(name="demo", epilog="Exit codes: 0 if everything happened as described, else 1.")
@click.option("--keep", is_flag=True, show_envvar=True, help="Keep the folder with the program and its database.")
def command(keep: bool) -> None:
    """Watch it work: retries, a killed worker, a flow, a batch, a pipeline, an open circuit, a schedule. 25 s."""
    logging.getLogger("windlass").addHandler(logging.NullHandler())  # failures are part of the story
    folder = Path(tempfile.mkdtemp(prefix="windlass-demo-"))
    location = f"{folder} ({'kept' if keep else 'removed at the end'})"
    facts(f"windlass {__version__} demo", [("store", "SQLite, in a temporary folder"), ("folder", location)])
    try:
        unmet = play(Presenter(), folder)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(1 if unmet else 0)


def play(presenter: Presenter, folder: Path) -> list[str]:
    """Play all scenes; answers the expectations that did not hold."""
    began = monotonic()
    first_program(presenter, folder)
    shop = open_shop(f"sqlite:///{folder / 'shop.db'}")
    try:
        scenes = [scene(presenter, shop) for scene in (retries, priorities, crash, steering, flow, batch)]
        dead_letters(presenter, shop)
        scenes.append(pipeline(presenter, shop))
        scenes.append(open_circuit(presenter, shop))
        scenes.append(schedule(presenter, shop))
        presenter.scene(12, "What the store says", "Read back from the database, job by job and attempt by attempt.")
        summary(presenter, shop.app, scenes)
    finally:
        shop.app.close()
    if presenter.unmet:
        presenter.line((f"✗ {len(presenter.unmet)} things did not happen as described", "bold red"))
    else:
        presenter.line(
            ("✓", "bold green"), (f"all of it happened as described, in {monotonic() - began:.0f} s", "bold")
        )
    return presenter.unmet
