"""What a worker process of a peer writes: JSON lines as those of `windlass.cli.bench.child`, but without Windlass."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

PAYLOAD = "x" * 186
"""With the JSON around it, `{"payload":"…"}`, 200 bytes of arguments."""


def report(event: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, "at": time.monotonic(), **facts}) + "\n")
    sys.stdout.flush()


def wait_for_go() -> None:
    report("prepared")
    sys.stdin.readline()


class Counted:
    """Counts what has ended, and reports it at most once a second: a silent child is given up after a minute."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0.0
        self._reported = time.monotonic()

    def add(self) -> None:
        self.count += 1
        self.last = time.monotonic()
        if self.last - self._reported >= 1:
            self._reported = self.last
            report("count", count=self.count)


def differences(name: str, *facts: tuple[str, object, object]) -> list[str]:
    """Of what was expected and what was found."""
    return [f"{name}: {what}: expected {want}, found {got}" for what, want, got in facts if want != got]
