"""A worker that kills itself around the commit of a failure: `python -m … URL MOMENT`, `before`, `after` or `never`."""

import os
import signal
import sys
from collections.abc import Sequence

from tests.crash.programs.application import make_app
from tests.crash.programs.bodies import write_down
from windlass.engine.attempt import Attempt
from windlass.engine.completer import Consequence
from windlass.engine.dead_letters import is_dead
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.worker import Node


def die(attempts: Sequence[Attempt]) -> None:
    if any(map(is_dead, attempts)):
        os.kill(os.getpid(), signal.SIGKILL)


def die_uncommitted(dialect: Dialect, attempts: Sequence[Attempt]) -> Plan[None]:
    """Registered after the node's own consequences: the dead letter is in the transaction by now."""
    del dialect
    die(attempts)
    yield from ()


def fail(number: int) -> None:
    write_down("failed", number)
    raise ValueError(f"no {number}")


def main(url: str, moment: str) -> int:
    app = make_app(url, (fail,))

    def ready(node: Node) -> None:
        if moment == "before":
            node.completer.add_consequence(Consequence(is_dead, die_uncommitted))
        elif moment == "after":
            node.when_written = die
        print(f"ready {node.id}", flush=True)

    code = app.worker().run(ready)
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
