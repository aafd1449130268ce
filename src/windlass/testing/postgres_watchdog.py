"""Stops an embedded PostgreSQL whose owner died without doing so; run as a script, never imported.

The owner holds the other end of our standard input and writes the server's process id on every start, 0 on every stop.
The kernel closes that pipe however the owner ends, SIGKILL included. A parent-death signal would be shorter, but goes
with the *thread* that started the server, and a test may well restart it from a thread that ends before the test does.
"""

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event

_CHECKS = 200
_CHECK_INTERVAL = 0.05


def _stop(pid: int, pid_file: Path) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        # Its file, not its pid: where process 1 reaps no children (many containers), a dead pid stays taken.
        for _ in range(_CHECKS):
            if not pid_file.exists():
                return
            Event().wait(_CHECK_INTERVAL)


def _watch(folder: Path) -> None:
    server = 0
    for line in sys.stdin:
        server = int(line)
    if server:
        _stop(server, folder / "data" / "postmaster.pid")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]))
