"""`windlass demo`: needs nothing but this package; a SQLite file in a temporary folder, gone afterwards."""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path

import click

from windlass._version import __version__
from windlass.cli.demo.control import steering
from windlass.cli.demo.crash import crash
from windlass.cli.demo.failures import dead_letters, open_circuit
from windlass.cli.demo.presenter import Stage, stage
from windlass.cli.demo.promises import Promises, summary
from windlass.cli.demo.scenes import first_program, priorities, retries
from windlass.cli.demo.shop import open_shop
from windlass.cli.output import facts
from windlass.domain.clock import monotonic


@click.command(name="demo", epilog="Exit codes: 0 if everything happened as told, else 1.")
@click.option("--keep", is_flag=True, show_envvar=True, help="Keep the folder with the program and its database.")
def command(keep: bool) -> None:
    """Watch it work: a first program, retries, priorities, a killed worker, a dead letter, an open circuit. 20 s."""
    logging.getLogger("windlass").addHandler(logging.NullHandler())  # failures are part of the story, and told in it
    folder = Path(tempfile.mkdtemp(prefix="windlass-demo-"))
    place = f"{folder} ({'kept' if keep else 'removed at the end'})"
    facts(f"windlass {__version__} demo", [("store", "SQLite, in a temporary folder"), ("folder", place)])
    try:
        broken = play(stage(), folder)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(1 if broken else 0)


def play(scene: Stage, folder: Path) -> list[str]:
    """Play all scenes; answers the promises that were not kept."""
    began = monotonic()
    promises = Promises(scene)
    first_program(scene, promises, folder)
    shop = open_shop(f"sqlite:///{folder / 'shop.db'}")
    try:
        scenes = [play_scene(scene, promises, shop) for play_scene in (retries, priorities, crash, steering)]
        dead_letters(scene, promises, shop)
        scenes.append(open_circuit(scene, promises, shop))
        scene.scene(8, "What the store says", "Read back from the database, job by job and attempt by attempt.")
        summary(scene, promises, shop.app, scenes)
    finally:
        shop.app.close()
    if promises.broken:
        scene.line((f"✗ {len(promises.broken)} things were not as told", "bold red"))
    else:
        scene.line(("✓", "bold green"), (f"everything was as told, in {monotonic() - began:.0f} s", "bold"))
    return promises.broken
