"""A worker of a chaos run: `python -m tests.chaos.programs.worker URL CONCURRENCY`. Prints `ready NODE`, and its log.

What it adds to a plain worker is witnessing: every lease it gets, every node it gives up. CHAOS_BROKEN names a defect
of `tests.chaos.broken` to be built into this process.
"""

import logging
import os
import sys

from tests.chaos import broken
from tests.chaos.application import make_app, shared_clock
from tests.chaos.witness import say
from windlass import NodeLost
from windlass.domain.clock import monotonic, wall_nanos
from windlass.maintenance import heartbeat
from windlass.maintenance.heartbeat import Heartbeat

BROKEN = "CHAOS_BROKEN"


def witness_leases() -> None:
    """Write down every lease: from before it was asked for, so that it certainly held as long as it says."""
    beat, register, got = Heartbeat.tick, Heartbeat.register, Heartbeat._renewed
    asked: dict[int, float] = {}

    def tick(self: Heartbeat) -> float | None:
        asked[id(self)] = monotonic()
        return beat(self)

    def registered(self: Heartbeat) -> None:
        asked[id(self)] = monotonic()
        register(self)

    def renewed(self: Heartbeat, lease_us: int, interval: float) -> None:
        got(self, lease_us, interval)
        since = asked[id(self)]
        say("lease", self.node.id, f"{since:.6f}", f"{since + lease_us / 1_000_000:.6f}")

    Heartbeat.tick, Heartbeat.register, Heartbeat._renewed = tick, registered, renewed  # type: ignore[method-assign]


def share_the_clock() -> None:
    """The heartbeat looks at the machine's own clock too, which no test may set for the whole machine."""
    clock = shared_clock()
    if clock is not None:
        heartbeat.wall_nanos = lambda: wall_nanos() + clock.error_micros * 1_000  # type: ignore[attr-defined]


def main(url: str, concurrency: str) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    witness_leases()
    share_the_clock()
    broken.install(os.environ.get(BROKEN, ""))
    app = make_app(url)

    @app.on(NodeLost)
    def taken(event: NodeLost) -> None:
        say("taken", event.node, f"{monotonic():.6f}")

    code = app.worker(concurrency=int(concurrency)).run(lambda node: print(f"ready {node.id}", flush=True))
    app.close()
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
