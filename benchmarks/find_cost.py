"""What one page of `app.find` costs among many finished jobs: times and, on PostgreSQL, buffers.

    python benchmarks/find_cost.py [--store postgresql://…/empty_database] [--sizes 10000,1000000,10000000]

The database must be empty; its tables are made, filled step by step, and left behind.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

import psycopg

from windlass import Windlass
from windlass.domain.clock import monotonic
from windlass.domain.states import JobStatus
from windlass.stores.plan import Step, drive
from windlass.stores.plans import search
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.postgres.session import Statements
from windlass.stores.postgres.url import GENERIC_PLANS

ASKED = {
    "anything": search.Filters(),
    "SUCCEEDED": search.Filters(status=JobStatus.SUCCEEDED),
    "FAILED (1 in 1,000)": search.Filters(status=JobStatus.FAILED),
    "RUNNING (none)": search.Filters(status=JobStatus.RUNNING),
    "a tag (1 in 1,000)": search.Filters(tag="rare"),
    "a business key (one)": search.Filters(business_key="order:7"),
    "a target (none)": search.Filters(target="shop:nothing"),
}
LOOKS = 15

ID = "lpad(to_hex(n), 32, '0')::uuid"
FILL = (
    f"""INSERT INTO windlass_job (id, queue, target, priority, args, business_key, created_at)
    SELECT {ID}, 'default', 'shop:charge', 2, '[[],{{}}]', CASE WHEN n = 7 THEN 'order:7' END, n FROM {{numbers}}""",
    f"""INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, finished_at)
    SELECT {ID}, 'default', 'shop:charge', CASE n % 1000 WHEN 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, 1, 1, 0, n
    FROM {{numbers}}""",
    f"INSERT INTO windlass_job_tag (tag, job_id) SELECT 'rare', {ID} FROM {{numbers}} WHERE n % 1000 = 0",
)


def main() -> None:
    """Fill, look, and print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--store", required=True)
    options.add_argument("--sizes", default="10000,1000000")
    given = options.parse_args()
    app = Windlass(given.store)
    app.migrate()
    print("| finished | asked | ms a page | buffers |\n|---:|---|---:|---:|")
    with psycopg.connect(given.store, autocommit=True, options=GENERIC_PLANS) as connection:
        connection.prepare_threshold = 1
        have = 0
        for size in [int(text) for text in given.sizes.split(",")]:
            for statement in FILL:
                connection.execute(statement.replace("{numbers}", f"generate_series({have + 1}, {size}) AS n"))  # type: ignore[arg-type]
            have = size
            connection.execute("VACUUM (ANALYZE)")
            for name, filters in ASKED.items():
                times, buffers = looked(connection, filters)
                print(f"| {size:,} | {name} | {median(times) * 1000:.1f} | {buffers:,} |", flush=True)
    app.close()


def looked(connection: psycopg.Connection[Any], filters: search.Filters) -> tuple[list[float], int]:
    """Ask for a page of 100 again and again; then once more to count buffers."""
    statements, touched, times = Statements(), 0, []

    def execute(step: Step) -> Any:
        text: Any = statements.text(statements.query(step), step.literals)
        rows = connection.execute(text, step.params).fetchall()
        return [(str(row[0]), *row[1:]) for row in rows]

    def counted(step: Step) -> Any:
        nonlocal touched
        text: Any = statements.text(statements.query(step), step.literals)
        answer: Any = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", step.params).fetchone()
        plan = answer[0][0]["Plan"]
        touched += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return execute(step)

    for _ in range(LOOKS):
        began = monotonic()
        plan = search.find_ids(PostgresDialect(), filters, None, 100)
        drive(plan, next(plan), execute)
        times.append(monotonic() - began)
    plan = search.find_ids(PostgresDialect(), filters, None, 100)
    drive(plan, next(plan), counted)
    return times, touched


if __name__ == "__main__":
    main()
