"""The `windlass` command, from its first moment on.

Outside of the package `windlass`, whose import takes a while: a worker that is stopped before it has begun must
end well, too. In a container, as process 1, it would not even be stopped: there a signal without a handler is ignored.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command; a worker exits with code 0 when it is stopped before it has handlers of its own."""
    if "worker" in sys.argv[1:2]:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave)
    from windlass.cli.main import main as run

    run()


def _leave(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise SystemExit(0)
