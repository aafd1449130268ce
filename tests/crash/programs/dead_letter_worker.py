"""A worker whose only job fails: `python -m tests.crash.programs.dead_letter_worker URL`. Failpoints kill it."""

import sys

from tests.crash.programs.application import make_app
from tests.crash.programs.bodies import write_down


def fail(number: int) -> None:
    write_down("failed", number)
    raise ValueError(f"no {number}")


def main(url: str) -> int:
    app = make_app(url, (fail,))
    code = app.worker().run(lambda node: print(f"ready {node.id}", flush=True))
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
