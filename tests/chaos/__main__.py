"""`make chaos ARGS="--store postgres --seed 7 --jobs 3000 --kills 15"`: a chaos run that shows how it goes.

The exit code is 0 if the oracle found nothing, else 1; then the run's files are kept, and their place is printed.
"""

import argparse
import shutil
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

from tests.chaos import broken
from tests.chaos.driver import Driver
from tests.chaos.faults import Options
from tests.chaos.report import Progress, show
from tests.chaos.workload import MIXES
from windlass.testing.embedded_postgres import EmbeddedPostgres


def parsed(arguments: list[str]) -> Options:
    """Every field of `Options` is an argument of the same name."""
    parser = argparse.ArgumentParser(prog="make chaos", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    choices: dict[str, Any] = {"store": ["sqlite", "postgres"], "broken": ["", *broken.NAMES], "mix": list(MIXES)}
    for option in fields(Options):
        name = f"--{option.name.replace('_', '-')}"
        if isinstance(option.default, bool):
            parser.add_argument(name, action="store_true")
        else:
            parser.add_argument(
                name, type=type(option.default), default=option.default, choices=choices.get(option.name)
            )
    return Options(**vars(parser.parse_args(arguments)))


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    print(f"seed {options.seed}: the same seed plans the same jobs and the same faults", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="windlass-chaos-"))
    with ExitStack() as stack:
        server = stack.enter_context(EmbeddedPostgres()) if options.store == "postgres" else None
        url = server.create_database() if server else f"sqlite:///{folder / 'windlass.db'}"
        driver, progress = Driver(options, url, folder, server), Progress()
        facts = driver.run(progress)
        progress.close()
    violations = driver.judge(facts)
    show(facts, driver.standing, violations)
    if violations:
        print(f"the witness, the logs and, of SQLite, the database are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
