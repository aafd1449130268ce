"""A process of its own that drains jobs, or does the bare minimum of it; run as `python -m windlass.cli.bench.child`.

It writes JSON lines: `prepared`, and after it was told to go `ready`, `count` now and then, and `end`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windlass.cli.bench import floor
from windlass.cli.bench.jobs import open_app, tally
from windlass.domain.clock import monotonic
from windlass.engine.attempt import Attempt
from windlass.node import Node

REPORT_EVERY = 0.05


def tell(event: str, **facts: Any) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps({"event": event, "at": monotonic(), **facts}) + "\n")
    sys.stdout.flush()


def memory() -> dict[str, int]:
    """Resident memory of this process now and at its highest, in bytes; Linux resets the latter at exec."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {key: int(lines[name].split()[0]) * 1024 for key, name in (("rss", "VmRSS"), ("peak", "VmHWM"))}


class Progress:
    """Counts what is committed, and says so at most every 50 ms."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0.0
        self._told = 0.0

    def add(self, number: int) -> None:
        """So many more are committed."""
        self.count += number
        self.last = monotonic()
        if self.last - self._told > REPORT_EVERY:
            self.tell()

    def tell(self) -> None:
        """Say how far it is."""
        self._told = monotonic()
        tell("count", count=self.count)


def work(url: str, concurrency: int) -> int:
    """Drain with a worker, exactly as `windlass worker` runs it, until SIGTERM."""
    bench = open_app(url)
    progress = Progress()

    def ready(node: Node) -> None:
        _count_commits(node, progress)
        tell("ready", **memory())

    tell("prepared")
    sys.stdin.readline()
    code = bench.app.worker(concurrency=concurrency).run(ready)
    bodies = tally.bodies()
    tell("end", count=progress.count, last=progress.last, bodies=bodies, code=code, starts=tally.starts, **memory())
    bench.app.close()
    return code


def _count_commits(node: Node, progress: Progress) -> None:
    """Listen to what the completer tells after each commit: once per batch, so that it costs nothing."""
    told = node.completer._told

    def counted(batch: Sequence[Attempt]) -> None:
        told(batch)
        progress.add(sum(attempt.verdict.terminal for attempt in batch))
        node._loop.call_later(2 * REPORT_EVERY, progress.tell)  # the last batch must be told too

    node.completer._told = counted


def drain_bare(url: str, batch: int) -> int:
    """Drain with the store's statements and nothing around them."""
    progress = Progress()
    bare = floor.on(url)
    tell("prepared")
    sys.stdin.readline()
    bare.drain(url, batch, lambda: tell("ready", **memory()), progress.add)
    tell("end", count=progress.count, last=progress.last, bodies=progress.count, code=0, starts=[], **memory())
    return 0


def hear(url: str, number: int) -> int:
    """Hear notifications and note when each came in."""
    starts: list[tuple[int, float]] = []
    with floor.listening(url, number) as notifications:
        tell("prepared")
        sys.stdin.readline()
        tell("ready", **memory())
        for payload in notifications:
            starts.append((int(payload), monotonic()))
    tell("end", count=number, last=monotonic(), bodies=number, code=0, starts=starts, **memory())
    return 0


if __name__ == "__main__":
    _, kind, url, argument = sys.argv
    raise SystemExit({"work": work, "floor": drain_bare, "hear": hear}[kind](url, int(argument)))
