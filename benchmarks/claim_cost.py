"""What one claim costs, from a thousand to a million waiting jobs: buffers touched (PostgreSQL) and times.

    .venv/bin/python benchmarks/claim_cost.py                     # starts its own PostgreSQL; the tables of the docs
    .venv/bin/python benchmarks/claim_cost.py --rows 1000,100000  # fewer rows, quicker

Shapes: `plain` one queue, due one after the other; `future` half the rows future and of the highest priority;
`one due` all rows with one due time (a bulk enqueue); `10 queues`, `50 queues` the same rows spread over queues.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from windlass.domain.clock import SystemClock
from windlass.stores import migrate
from windlass.stores.claim_order import ClaimRequest, Head
from windlass.stores.database import Database
from windlass.stores.open import open_database
from windlass.stores.plan import Step
from windlass.stores.plans import cluster, queues
from windlass.stores.postgres.session import Statements
from windlass.stores.sqlite.dialect import SqliteDatabase
from windlass.testing.embedded_postgres import EmbeddedPostgres

SHAPES = ("plain", "future", "one due", "10 queues", "50 queues")
NODE = "claim-cost"
WANTED = 256
ROUNDS = 15
BOOST_US = 900_000_000
PAST, FUTURE = 1_000_000_000_000, 9_000_000_000_000_000

_ID = {"sqlite": "printf('%08x-0000-7000-8000-%012x', n, n)", "postgres": "gen_random_uuid()"}
_SERIES = {
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {rows}) {insert} FROM s",
    "postgres": "{insert} FROM generate_series(1, {rows}) AS s(n)",
}


def fill_statement(dialect: str, shape: str, rows: int) -> str:
    """One INSERT that makes the rows of a shape."""
    spread = {"10 queues": 10, "50 queues": 50}.get(shape, 1)
    queue = f"'q' || (n % {spread})"
    due = {"one due": str(PAST)}.get(shape, f"{PAST} + n * 1000")
    priority = "2"
    if shape == "future":
        due = f"CASE WHEN n % 2 = 0 THEN {FUTURE} ELSE {due} END"
        priority = "CASE WHEN n % 2 = 0 THEN 4 ELSE 2 END"
    insert = (
        "INSERT INTO windlass_hot (id, queue, target, status, priority, due, fence, attempts, crash_count) "
        f"SELECT {_ID[dialect]}, {queue}, 'bench:noop', 'PENDING', {priority}, {due}, 0, 0, 0"
    )
    return _SERIES[dialect].format(insert=insert, rows=rows)


def chunk_for(heads: list[Head]) -> int:
    """The poller's own choice: all that is wanted of one or two levels, a share of many."""
    return WANTED if len(heads) <= 2 else max(8, 1 << (2 * WANTED // len(heads) - 1).bit_length())


def request_for(database: Database) -> ClaimRequest:
    """A claim as a poller would make it."""
    found = database.read(queues.heads, lambda name: True, lambda target: True)
    heads = [head for head in found.heads if head.due_at <= found.now]
    return ClaimRequest(NODE, heads, WANTED, chunk_for(heads), BOOST_US)


def claim_times(database: Database) -> tuple[float, float]:
    """Median milliseconds of a claim and of a look at the heads."""
    claims, looks = [], []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        request = request_for(database)
        looks.append(time.perf_counter() - started)
        started = time.perf_counter()
        claimed = database.run(claims.claim, request)
        took = time.perf_counter() - started
        if len(claimed.claims) < WANTED and claims:
            break  # a small shape ran dry
        claims.append(took)
    return statistics.median(claims) * 1e3, statistics.median(looks) * 1e3


def buffers(url: str, request: ClaimRequest) -> int:
    """Shared buffers one claim touches."""
    statements = Statements()
    plan = open_database(url, SystemClock()).dialect.claim(request)
    step: Step = next(plan)
    text = statements.text(statements.query(step), step.literals)
    with psycopg.connect(url) as connection:
        explain: Any = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}"
        report = connection.execute(explain, dict(step.params)).fetchone()[0][0]["Plan"]
        connection.rollback()
    return int(report["Shared Hit Blocks"] + report["Shared Read Blocks"])


def prepare(database: Database, shape: str, rows: int, execute: Any) -> None:
    """An empty schema filled with one shape."""
    migrate.migrate(database)
    execute(fill_statement(database.dialect.name, shape, rows))
    execute("INSERT INTO windlass_queue (name) SELECT DISTINCT queue FROM windlass_hot")
    execute("ANALYZE windlass_hot")
    database.run(cluster.register, cluster.NodeRow(NODE, "here", 1, "0", None), 10**12)


def measure_postgres(server: EmbeddedPostgres, shape: str, rows: int) -> tuple[float, float, int]:
    """Times and buffers on a fresh PostgreSQL database."""
    url = server.create_database()
    database = open_database(url, SystemClock())
    with psycopg.connect(url, autocommit=True) as connection:
        prepare(database, shape, rows, connection.execute)
        connection.execute("VACUUM windlass_hot")
    touched = buffers(url, request_for(database))
    claim, look = claim_times(database)
    database.close()
    server.drop_database(url)
    return claim, look, touched


def measure_sqlite(shape: str, rows: int) -> tuple[float, float]:
    """Times on a fresh SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(str(Path(folder) / "cost.db"), SystemClock().micros)
        migrate.migrate(database)
        writer = database._writer
        prepare(database, shape, rows, lambda sql: writer.submit(lambda s: s.connection.execute(sql).rowcount).result())
        times = claim_times(database)
        database.close()
    return times


def main() -> None:
    """Print one table per store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1000,10000,100000,1000000")
    sizes = [int(part) for part in parser.parse_args().rows.split(",")]
    print(f"claims of {WANTED}, median of up to {ROUNDS}")
    print("\n| PostgreSQL | waiting | claim ms | heads ms | buffers a claim |\n|---|---:|---:|---:|---:|")
    with EmbeddedPostgres.for_benchmarks() as server:
        for shape in SHAPES:
            for rows in sizes:
                claim, look, touched = measure_postgres(server, shape, rows)
                print(f"| {shape} | {rows:,} | {claim:.2f} | {look:.2f} | {touched:,} |", flush=True)
    print("\n| SQLite | waiting | claim ms | heads ms |\n|---|---:|---:|---:|")
    for shape in SHAPES:
        for rows in sizes:
            claim, look = measure_sqlite(shape, rows)
            print(f"| {shape} | {rows:,} | {claim:.2f} | {look:.2f} |", flush=True)


if __name__ == "__main__":
    main()
