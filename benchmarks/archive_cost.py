"""What the archive costs: an index on finished_at against walking along the ids, and moving itself.

    python benchmarks/archive_cost.py [--store postgresql://…/empty_database | sqlite:///new.db] [--jobs 100000]

The database must be empty; its tables are made, filled, and left behind. Runs scatter: compare within one run.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from statistics import median
from typing import Any, NamedTuple

import psycopg

from windlass.domain.clock import SystemClock, monotonic
from windlass.domain.identity import new_job_id
from windlass.domain.job import NewJob
from windlass.domain.transition import Times, succeeded
from windlass.stores.database import Database
from windlass.stores.dialect import ClaimRequest, Dialect
from windlass.stores.migrate import migrate
from windlass.stores.open import open_database
from windlass.stores.plan import SCRIPT, Plan, Step
from windlass.stores.plans import archive, cluster, jobs, queues

NODE = "bench"
FLUSH = 500
ARGS = f'[["{"x" * 200}"],{{}}]'
INDEX = "CREATE INDEX windlass_bench_finished ON windlass_done (finished_at)"
ROUNDS = 6
DAY = 86_400_000_000


def main() -> None:
    """Measure, and print lines of a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--store", required=True)
    options.add_argument("--jobs", type=int, default=60_000)
    given = options.parse_args()
    database = open_database(given.store, SystemClock())
    migrate(database)
    database.run(cluster.register, cluster.NodeRow(NODE, "host", 1, "0", None), 10**12)
    print(database.description)
    a_round = given.jobs // (2 * ROUNDS)
    rates: dict[bool, list[float]] = {False: [], True: []}
    sizes: dict[bool, list[float]] = {False: [], True: []}
    complete(database, given.store, a_round)
    for number in range(2 * ROUNDS):
        indexed = number % 2 == 1
        if indexed:
            database.run(script, INDEX)
        done = complete(database, given.store, a_round)
        rates[indexed].append(done.rate)
        sizes[indexed].append(done.size)
        if indexed:
            database.run(script, "DROP INDEX windlass_bench_finished")
    for indexed, name in ((False, "without an index on finished_at"), (True, "with one")):
        low, high = min(rates[indexed]), max(rates[indexed])
        print(f"| completions a second {name} | {median(rates[indexed]):,.0f} ({low:,.0f} to {high:,.0f}) |")
        print(f"| bytes a completion {name} | {median(sizes[indexed]):,.0f} |")
    look(database, "of which none is old", DAY)
    look(database, "of which all are old", 0)
    print(f"| jobs archived a second | {move_all(database):,.0f} |")
    look(database, "after that", 0)
    database.close()


class Completed(NamedTuple):
    """Completions a second, the store's part alone, and what one of them adds: to the WAL, or to the file."""

    rate: float
    size: float


def written(url: str) -> int:
    """Bytes so far: PostgreSQL's log, or the pages of a SQLite file."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return int(
                connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[
                    0
                ]
            )
    with psycopg.connect(url, autocommit=True) as server:
        answer: Any = server.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
        return int(answer[0])


def complete(database: Database, url: str, count: int) -> Completed:
    """Store, claim, and measure completing."""
    for start in range(0, count, FLUSH):
        new = [NewJob(new_job_id(), "default", "shop:charge", 2, ARGS) for _ in range(min(FLUSH, count - start))]
        database.run(jobs.submit, [new], ["default"])
    claims = list(claimed(database))
    before, started = written(url), monotonic()
    for start in range(0, len(claims), FLUSH):
        now = SystemClock().micros()
        part = claims[start : start + FLUSH]
        database.run(jobs.apply, [succeeded(claim, Times(now, now, 0), '"ok"', holds_key=False) for claim in part])
    took = monotonic() - started
    return Completed(len(claims) / took, (written(url) - before) / len(claims))


def claimed(database: Database) -> Iterator[Any]:
    """Everything that waits."""
    while True:
        heads = database.read(queues.heads, lambda _: True, lambda _: True).heads
        part = database.run(jobs.claim, ClaimRequest(NODE, heads, FLUSH, FLUSH, 0)).claims if heads else []
        if not part:
            return
        yield from part


def look(database: Database, what: str, age_us: int) -> None:
    """Milliseconds of one look for old jobs."""
    times = []
    for _ in range(5):
        started = monotonic()
        database.read(archive.old_jobs, age_us, archive.FIRST_ID, 500)
        times.append(monotonic() - started)
    print(f"| ms to look for 500 jobs, {what} | {1000 * median(times):.1f} |")


def move_all(database: Database) -> float:
    """Jobs archived a second, without the rests of the duty."""
    moved, started = 0, monotonic()
    after: str | None = archive.FIRST_ID
    while after is not None:
        found = database.read(archive.old_jobs, 0, after, 500)
        moved += database.run(archive.move, found.ids, 0).jobs
        after = found.next_after
    return moved / (monotonic() - started)


def script(dialect: Dialect, text: str) -> Plan[None]:
    """A statement of this page's own."""
    del dialect
    yield Step(SCRIPT, {"text": text})


if __name__ == "__main__":
    main()
