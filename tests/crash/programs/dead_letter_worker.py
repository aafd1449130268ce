"""A worker that kills itself around the commit of a failure: `python -m … URL MOMENT`, `before`, `after` or `never`."""

import sys

from tests.crash.programs.application import make_app
from tests.crash.programs.bodies import write_down
from tests.crash.programs.callback_worker import die, die_uncommitted
from windlass.engine.completer import Consequence
from windlass.engine.dead_letters import is_dead
from windlass.worker import Node


def fail(number: int) -> None:
    write_down("failed", number)
    raise ValueError(f"no {number}")


def main(url: str, moment: str) -> int:
    app = make_app(url, (fail,))

    def ready(node: Node) -> None:
        if moment == "before":  # registered last: the dead letter is in the transaction by now
            node.completer.add_consequence(Consequence(is_dead, die_uncommitted))
        elif moment == "after":
            node.telling.when_written = lambda attempts: die() if any(map(is_dead, attempts)) else None
        print(f"ready {node.id}", flush=True)

    code = app.worker().run(ready)
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
