"""What a claim costs beside jobs that gates keep back, from a thousand to half a million of them.

    .venv/bin/python benchmarks/gate_cost.py                     # starts its own PostgreSQL; the tables of the docs
    .venv/bin/python benchmarks/gate_cost.py --rows 1000,100000  # fewer rows, quicker

Shapes: `full lane` all behind one resource without a free permit; `full keys` spread over 10,000 keys of it, none free;
`free keys` the same with a permit each; `open circuit` all behind one; `full queue` in a queue at its limit. Beside
them wait 4,000 plain jobs in another queue, which each claim takes 200 of.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
from claim_cost import _SERIES, PAST

from windlass.domain.circuit import Circuit
from windlass.domain.clock import SystemClock
from windlass.stores import migrate
from windlass.stores.claim_order import ClaimRequest
from windlass.stores.database import Database
from windlass.stores.open import open_database
from windlass.stores.plans import claims, cluster, limits, queues
from windlass.stores.plans.limits import Limit
from windlass.stores.sqlite.dialect import SqliteDatabase
from windlass.testing.embedded_postgres import EmbeddedPostgres

SHAPES = ("full lane", "full keys", "free keys", "open circuit", "full queue")
LANES = {
    "full lane": "'resource:r'",
    "full keys": "'resource:r/' || (n % 10000)",
    "free keys": "'resource:r/' || (n % 10000)",
    "open circuit": "'circuit:c'",
    "full queue": "NULL",
}
NODE, WANTED, PLAIN, ROUNDS = "gate-cost", 200, 4000, 15


def insert(dialect: str, queue: str, lane: str, rows: int, offset: int) -> str:
    """One INSERT of waiting rows."""
    number = f"n + {offset}"
    job_id = f"printf('%08x-0000-7000-8000-%012x', {number}, {number})" if dialect == "sqlite" else "gen_random_uuid()"
    select = (
        "INSERT INTO windlass_hot (id, queue, target, lane, status, priority, due, fence, attempts, crash_count) "
        f"SELECT {job_id}, '{queue}', 'bench:noop', {lane}, 'PENDING', 2, {PAST} + n, 0, 0, 0"
    )
    return _SERIES[dialect].format(insert=select, rows=rows)


def prepare(database: Database, shape: str, rows: int, execute: Any) -> None:
    """A schema with what is kept back, and plain jobs beside it."""
    migrate.migrate(database)
    kind = database.dialect.name
    execute(insert(kind, "held", LANES[shape], rows, 0))
    execute(insert(kind, "plain", "NULL", PLAIN, 10_000_000))
    execute("INSERT INTO windlass_queue (name) SELECT DISTINCT queue FROM windlass_hot")
    execute("ANALYZE windlass_hot")
    database.run(cluster.register, cluster.NodeRow(NODE, "here", 1, "0", None), 10**12)
    cap = 1 if shape == "free keys" else 0
    database.run(limits.configure_resource, "r", Limit(cap, None, None, 5_000_000))
    if shape == "full queue":
        database.run(limits.limit_queue, "held", Limit(0, None, None))
    if shape == "open circuit":
        database.run(limits.steer_circuit, "c", Circuit.opened_by_hand)


def times(database: Database) -> tuple[float, float, float]:
    """Median milliseconds of a look, of a claim of what is due by it, and of one that also asks every gate it saw."""
    looks, claims, asked = [], [], []
    after = queues.FIRST_LANE
    for _ in range(ROUNDS):
        started = time.perf_counter()
        found = database.read(queues.heads, lambda name: True, lambda target: True, after)
        looks.append(time.perf_counter() - started)
        after = found.after
        due = [head for head in found.heads if head.due_at <= found.now]
        claims.append(timed(database, ClaimRequest(NODE, due, WANTED, 256, 0, found.limited)))
        asked.append(timed(database, ClaimRequest(NODE, found.heads, 1, 1, 0, found.limited)))
    return (*(statistics.median(kind) * 1e3 for kind in (looks, claims, asked)),)  # type: ignore[return-value]


def timed(database: Database, request: ClaimRequest) -> float:
    """Seconds of one claim."""
    started = time.perf_counter()
    database.run(claims.claim, request)
    return time.perf_counter() - started


def main() -> None:
    """Print one table per store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1000,10000,100000,500000")
    sizes = [int(part) for part in parser.parse_args().rows.split(",")]
    heading = "kept back | look ms | claim ms | claim asking every gate ms |\n|---|---:|---:|---:|---:|"
    print(f"| PostgreSQL | {heading}")
    with EmbeddedPostgres.for_benchmarks() as server:
        for shape in SHAPES:
            for rows in sizes:
                url = server.create_database()
                database = open_database(url, SystemClock())
                with psycopg.connect(url, autocommit=True) as connection:
                    prepare(database, shape, rows, connection.execute)
                    connection.execute("VACUUM windlass_hot")
                print(
                    f"| {shape} | {rows:,} | " + " | ".join(f"{value:.2f}" for value in times(database)) + " |",
                    flush=True,
                )
                database.close()
                server.drop_database(url)
    print(f"\n| SQLite | {heading}")
    for shape in SHAPES:
        for rows in sizes:
            with tempfile.TemporaryDirectory() as folder:
                database = SqliteDatabase(str(Path(folder) / "cost.db"), SystemClock().micros)
                migrate.migrate(database)
                write = database._writer.submit
                prepare(
                    database, shape, rows, lambda sql, write=write: write(lambda s: s.connection.execute(sql)).result()
                )
                print(
                    f"| {shape} | {rows:,} | " + " | ".join(f"{value:.2f}" for value in times(database)) + " |",
                    flush=True,
                )
                database.close()


if __name__ == "__main__":
    main()
