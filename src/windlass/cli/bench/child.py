"""A process of its own that drains jobs; run as `python -m windlass.cli.bench.child URL CONCURRENCY [LARGEST_FLUSH]`.

It writes JSON lines: `prepared`, and once it was let go `ready`, `count` now and then, and `end`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windlass.cli.bench import jobs
from windlass.domain.clock import monotonic
from windlass.engine.attempt import Attempt
from windlass.engine.completer import MAX_IN_A_FLUSH

REPORT_EVERY = 0.05


def report(event: str, **facts: Any) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps({"event": event, "at": monotonic(), **facts}) + "\n")
    sys.stdout.flush()


def wait_for_go() -> None:
    """Report that all is prepared, and wait for the parent."""
    report("prepared")
    sys.stdin.readline()


def usage() -> dict[str, float]:
    """Resident memory of this process now and at its highest, in bytes, and its CPU time so far, in seconds.

    Linux resets the highest at exec.
    """
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    sizes = {key: int(lines[name].split()[0]) * 1024 for key, name in (("rss", "VmRSS"), ("peak", "VmHWM"))}
    return {**sizes, "cpu": time.process_time()}


class Committed:
    """Counts what is committed, and reports it at most every 50 ms."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0.0
        self.sizes: Counter[int] = Counter()
        """How many commits held how many outcomes."""
        self._reported = 0.0

    def add(self, number: int) -> None:
        """Count so many more, which share a commit."""
        self.count += number
        self.sizes[number] += 1
        self.last = monotonic()
        if self.last - self._reported > REPORT_EVERY:
            self.report()

    def report(self) -> None:
        """Report how many there are."""
        self._reported = monotonic()
        report("count", count=self.count, last=self.last)

    def end(self, bodies: int, starts: Sequence[tuple[int, float]] = (), code: int = 0) -> None:
        """Report the end."""
        facts = {"count": self.count, "last": self.last, "bodies": bodies, "code": code, "starts": starts}
        report("end", **facts, commits=list(self.sizes.items()), **usage())


def work(url: str, concurrency: int, largest_flush: int = MAX_IN_A_FLUSH) -> int:
    """Drain with a worker, exactly as `windlass worker` runs it, until SIGTERM."""
    bench = jobs.open_app(url)
    committed = Committed()

    def written(batch: Sequence[Attempt]) -> None:
        committed.add(sum(attempt.verdict.terminal for attempt in batch))
        asyncio.get_running_loop().call_later(2 * REPORT_EVERY, committed.report)  # the last batch must be reported too

    bench.app.exchange(bench.app.parts._replace(written=written, largest_flush=largest_flush))
    wait_for_go()
    code = bench.app.worker(concurrency=concurrency).run(lambda node: report("ready", **usage()))
    committed.end(jobs.bodies(), jobs.starts, code)
    bench.app.close()
    return code


if __name__ == "__main__":
    raise SystemExit(work(sys.argv[1], *map(int, sys.argv[2:])))
