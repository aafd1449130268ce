"""How the peers' settings were chosen: drains with several of them.

python -m benchmarks.peers.tune [--peer graphile,awa] [--jobs 20000]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.peers import catalog
from benchmarks.peers.catalog import PEERS, Peer
from windlass.cli.bench.processes import Children
from windlass.cli.bench.scratch import PostgresScratch, SqliteScratch, settle
from windlass.testing.embedded_postgres import EmbeddedPostgres

TRIALS: dict[str, tuple[tuple[str, ...], list[tuple[int, ...]]]] = {
    "pgqueuer": (("batch",), [(10,), (50,), (100,), (256,), (500,), (1_000,)]),
    "procrastinate": (("concurrency", "connections"), [(10, 4), (100, 4), (100, 8), (100, 16), (100, 32)]),
    "graphile": (("local queue", "jobs at a time"), [(24, 24), (100, 24), (500, 24), (500, 100), (2_000, 24)]),
    "awa": (("workers", "claimers"), [(100, 1), (200, 1), (500, 1), (500, 2), (500, 4), (1_000, 1)]),
}
"""What the arguments of `drain` mean, and which to try."""
HUEY_WORKERS = (1, 2, 4, 8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=catalog.chosen, default=list(PEERS))
    parser.add_argument("--jobs", type=int, default=20_000)
    asked = parser.parse_args()
    for peer in asked.peer:
        reason = catalog.missing(peer)
        if reason is not None:
            print(f"not tried: {peer.name}: {reason}", file=sys.stderr)
        elif peer.key in TRIALS:
            on_postgres(peer, asked.jobs)
        else:
            huey(peer, min(asked.jobs, 3_000))


def on_postgres(peer: Peer, jobs: int) -> None:
    names, trials = TRIALS[peer.key]
    module = peer.load()
    with EmbeddedPostgres.for_benchmarks() as server:
        for numbers in trials:
            with PostgresScratch(server.url).fresh() as url:
                module.install(url)
                module.enqueue_bulk(url, jobs - 1, 0)
                settle(url)
                rate = drained(peer, "drain", url, jobs, *numbers, ends=module.ENDS)
            settings = ", ".join(f"{name} {number:,}" for name, number in zip(names, numbers, strict=True))
            print(f"{peer.name}, {settings}: {rate:,.0f}/s", flush=True)


def huey(peer: Peer, jobs: int) -> None:
    module = peer.load()
    with tempfile.TemporaryDirectory() as folder:
        for workers in HUEY_WORKERS:
            with SqliteScratch(Path(folder)).fresh() as url:
                module.fill(url, jobs)
                rate = drained(peer, str(workers), url, jobs, jobs)
            print(f"{peer.name}, {workers} workers: {rate:,.0f}/s", flush=True)


def drained(peer: Peer, kind: str, url: str, jobs: int, *numbers: int, ends: bool = True) -> float:
    with Children(url, *numbers, program=("-m", peer.module, kind), ends=ends) as children:
        children.go()
        run = children.finish(jobs)
    return run.ended / run.seconds


if __name__ == "__main__":
    main()
