"""A worker with process jobs: `python -m tests.crash.programs.process_worker URL`. Prints `ready NODE`, and its log."""

import logging
import sys

from tests.support import process_bodies
from windlass import Windlass


def main(url: str) -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    app = Windlass(url, allow=[process_bodies.__name__])
    code = app.worker().run(lambda node: print(f"ready {node.id}", flush=True))
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
