"""What a listing of the queues costs on PostgreSQL must not grow with what waits in one of them."""

from typing import Any

import psycopg

from tests.stores.databases import migrate_at
from windlass.stores.plan import Step
from windlass.stores.postgres.session import Statements

COUNTED = 10_000
SHALLOW = 20
QUEUES = 100
FILL = """
INSERT INTO windlass_hot (id, queue, target, status, priority, due, fence, attempts, crash_count)
SELECT lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n <= %(shallow)s THEN 'q' || n %% %(queues)s ELSE 'deep' END,
    'shop:charge', 'PENDING', 2, n, 0, 0, 0
FROM generate_series(%(first)s::int, %(last)s::int) AS n
"""


def rows_read(connection: psycopg.Connection[Any]) -> int:
    """How many rows the nodes of the plan give on, all together."""
    with connection.transaction():
        connection.execute(_text("walk_indexes"))
        found: Any = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {_text('queue_depths')}").fetchone()
    return _rows(found[0][0]["Plan"])


def _text(name: str) -> Any:
    statements = Statements()
    return statements.text(statements.query(Step(name)), None)


def _rows(node: dict[str, Any]) -> int:
    own = (
        node["Actual Rows"] * node["Actual Loops"] if "Index" in node["Node Type"] or "Scan" in node["Node Type"] else 0
    )
    return round(own) + sum(_rows(child) for child in node.get("Plans", ()))


def test_a_deep_queue_is_counted_up_to_its_bound_and_no_further(clean_pg_url: str):
    """J1.7: of 30,000 and of 150,000 waiting jobs as many rows are read; statistics are those of the average queue."""
    migrate_at(clean_pg_url)
    shallow = SHALLOW * QUEUES
    with psycopg.connect(clean_pg_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO windlass_queue (name) SELECT 'q' || n FROM generate_series(0, %s) AS n UNION SELECT 'deep'",
            [QUEUES - 1],
        )
        cost = []
        for first, last in ((1, 30_000), (30_001, 150_000)):
            connection.execute(FILL, {"shallow": shallow, "queues": QUEUES, "first": first, "last": last})
            connection.execute("ANALYZE windlass_hot")
            cost.append(rows_read(connection))
    assert cost[0] == cost[1]
    assert cost[0] < 3 * (COUNTED + shallow)
