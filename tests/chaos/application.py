"""The application of a chaos run: its jobs, and a clock that the driver can set for all processes at once."""

import mmap
import os
import struct
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.chaos import bodies, pipelines
from windlass import Windlass
from windlass.domain.clock import SystemClock

CLOCK = "CHAOS_CLOCK"
"""The variable that names the file with the clock's error; without it the store's own clock is used."""
CAP = 3
CIRCUIT = {"failure_rate": 50, "window": 10, "minimum_calls": 5, "open_wait": 1, "trials": 2}
_MICROS = struct.Struct("<q")


class SettableClock:
    """The machine's clock, wrong by what stands in a file that all processes of a run share."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_MICROS.pack(0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _MICROS.size)

    @property
    def error_micros(self) -> int:
        return int(_MICROS.unpack(self._shared[: _MICROS.size])[0])

    def jump(self, seconds: float) -> None:
        """Set the clock of all processes, forward or back."""
        self._shared[: _MICROS.size] = _MICROS.pack(self.error_micros + int(seconds * 1_000_000))

    def now(self) -> datetime:
        return SystemClock().now() + timedelta(microseconds=self.error_micros)


def shared_clock() -> SettableClock | None:
    place = os.environ.get(CLOCK)
    return SettableClock(Path(place)) if place else None


def protect(app: Any) -> None:
    """Set what some jobs wait behind: a resource, one with keys, and a circuit."""
    app.configure_resource("stripe", max_concurrent=CAP, retry_delay=1)
    app.configure_resource("tenants", max_concurrent=1, retry_delay=1)
    app.configure_resource(pipelines.TILLS, max_concurrent=pipelines.TILLS_CAP)
    app.configure_circuit("gateway", **CIRCUIT)


def make_app(url: str) -> Windlass:
    clock = shared_clock()
    app = Windlass(url, clock=clock) if clock else Windlass(url)
    for body in bodies.ALL:
        app.job(body)
    pipelines.declare(app)
    return app
