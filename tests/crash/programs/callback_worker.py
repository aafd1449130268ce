"""A worker that kills itself around a commit: `python -m tests.crash.programs.callback_worker URL MOMENT`.

MOMENT is `before` (everything is written, nothing is committed), `after` (the commit has just been answered) or
`never`.
"""

import os
import signal
import sys
from collections.abc import Sequence

from tests.crash.programs import callback_bodies
from tests.crash.programs.application import make_app
from windlass.engine.attempt import Attempt
from windlass.engine.callbacks import has_callback
from windlass.engine.completer import Consequence
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.worker import Node


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_uncommitted(dialect: Dialect, attempts: Sequence[Attempt]) -> Plan[None]:
    """Registered after the node's own consequences: the callback's rows are in the transaction by now."""
    del dialect, attempts
    die()
    yield from ()


def die_committed(attempts: Sequence[Attempt]) -> None:
    """Called with the answer of the commit, before anybody is told."""
    if any(map(has_callback, attempts)):
        die()


def main(url: str, moment: str) -> int:
    app = make_app(url, callback_bodies.ALL)

    def ready(node: Node) -> None:
        if moment == "before":
            node.completer.add_consequence(Consequence(has_callback, die_uncommitted))
        elif moment == "after":
            node.telling.when_written = die_committed
        print(f"ready {node.id}", flush=True)

    code = app.worker().run(ready)
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
