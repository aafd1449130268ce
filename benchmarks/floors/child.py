"""A process that does the bare minimum, and reports like `windlass.cli.bench.child`: `-m benchmarks.floors.child`."""

from __future__ import annotations

import sys

from benchmarks import floors
from windlass.cli.bench.child import Committed, report, usage, wait_for_go
from windlass.domain.clock import monotonic


def drain(url: str, batch: int) -> None:
    """Drain with the store's statements and nothing around them."""
    committed = Committed()
    floor = floors.on(url)
    wait_for_go()
    floor.drain(url, batch, lambda: report("ready", **usage()), committed.add)
    committed.end(bodies=committed.count)


def listen(url: str, number: int) -> None:
    """Receive notifications, and note when each came in."""
    committed = Committed()
    starts: list[tuple[int, float]] = []
    with floors.on(url).listening(url, number) as notifications:
        wait_for_go()
        report("ready", **usage())
        for payload in notifications:
            starts.append((int(payload), monotonic()))
            committed.add(1)
    committed.end(bodies=number, starts=starts)


if __name__ == "__main__":
    _, kind, url, argument = sys.argv
    {"drain": drain, "listen": listen}[kind](url, int(argument))
