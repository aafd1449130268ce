"""How the peers' settings were chosen: drains with several of them. `python -m benchmarks.peers.tune`"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.peers import huey_peer, pgqueuer_peer
from windlass.cli.bench.processes import Children
from windlass.cli.bench.scratch import PostgresScratch, SqliteScratch, settle
from windlass.testing.embedded_postgres import EmbeddedPostgres

JOBS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000


def main() -> None:
    pgqueuer()
    huey()


def pgqueuer() -> None:
    with EmbeddedPostgres.for_benchmarks() as server:
        for batch in (10, 50, 100, 256, 500, 1_000):
            with PostgresScratch(server.url).fresh() as url:
                pgqueuer_peer.install(url)
                pgqueuer_peer.enqueue_bulk(url, JOBS - 1, 0)
                settle(url)
                program = ("-m", "benchmarks.peers.pgqueuer_peer", "drain")
                with Children(url, batch, program=program, ends=True) as children:
                    children.go()
                    run = children.finish(JOBS)
                print(f"PgQueuer, batch {batch}: {run.ended / run.seconds:,.0f}/s", flush=True)


def huey() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for workers in (1, 2, 4, 8):
            with SqliteScratch(Path(folder)).fresh() as url:
                huey_peer.fill(url, 3_000)
                program = ("-m", "benchmarks.peers.huey_peer", str(workers))
                with Children(url, 3_000, program=program, ends=True) as children:
                    children.go()
                    run = children.finish(3_000)
                print(f"Huey, {workers} workers: {run.ended / run.seconds:,.0f}/s", flush=True)


if __name__ == "__main__":
    main()
