"""What a signal and a look at deadlines cost does not grow with what waits for other signals: the databases count."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.stores.costs import buffers, instructions
from tests.stores.databases import migrate_at
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import signal_waits
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.files import connect
from windlass.testing.postgres_server import PostgresServer

FEW, MANY = 2_000, 20_000
MOST_GROWTH = 2.0
"""A larger index is at most a level deeper; a scan would cost ten times more."""
LATER = 9 * 10**15
"""A deadline after the present."""

FILL = """
INSERT INTO windlass_job (id, queue, target, priority, args, created_at)
SELECT {id}, 'default', 'shop:charge', 2, '[[],{{}}]', n FROM {numbers};
INSERT INTO windlass_hot (id, queue, target, status, priority, due, fence, attempts, crash_count)
SELECT {id}, 'default', 'shop:charge', CASE WHEN n % 2 = 0 THEN 'PENDING' ELSE 'WAITING' END, 2, {later} + n, 0, 0, 0
FROM {numbers};
INSERT INTO windlass_signal_wait (job_id, key, open)
SELECT {id}, CASE WHEN n % 100 = 2 THEN 'mine' ELSE 'other' || n END, n % 2 FROM {numbers}
"""
"""Half of the jobs wait for keys of their own; some that waited for ours were signaled long ago."""


def _first_deadline(dialect: Dialect) -> Plan[None]:
    del dialect
    yield Step("first_deadline")


PLANS: dict[str, Callable[[Dialect], Plan[Any]]] = {
    "signal": lambda dialect: signal_waits.deliver(dialect, "{}", None, key="mine"),
    "deadline": _first_deadline,
    "timeouts": signal_waits.expire,
}
each_plan = pytest.mark.parametrize("name", PLANS)


def on_sqlite(path: Path, rows: int, name: str) -> int:
    migrate_at(f"sqlite:///{path}")
    numbers = f"(WITH RECURSIVE s(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM s WHERE n < {rows}) SELECT n FROM s)"
    with closing(connect(str(path), "OFF", lambda: 10**15)) as connection:
        for text in FILL.format(id="'job-' || n", numbers=numbers, later=LATER).split(";"):
            connection.execute(text)
        connection.commit()
        return instructions(connection, PLANS[name](SqliteDialect()))


def on_postgres(server: PostgresServer, rows: int, name: str) -> int:
    url = server.create_database()
    migrate_at(url)
    with psycopg.connect(url, autocommit=True) as connection:
        made = "lpad(to_hex(n), 32, '0')::uuid"
        for text in FILL.format(id=made, numbers=f"generate_series(1, {rows}) n", later=LATER).split(";"):
            connection.execute(text.encode())
        connection.execute("VACUUM ANALYZE")
        cost = buffers(connection, PLANS[name](PostgresDialect()))
    server.drop_database(url)
    return cost


@each_plan
def test_signals_and_timeouts_on_sqlite(tmp_path: Path, name: str):
    """J8.5: along partial indexes, of open waits by key and of deadlines."""
    few, many = (on_sqlite(tmp_path / f"{rows}.db", rows, name) for rows in (FEW, MANY))
    assert many <= few * MOST_GROWTH, (few, many)


@each_plan
def test_signals_and_timeouts_on_postgresql(postgres_server: PostgresServer, name: str):
    """J8.5: the same."""
    few, many = (on_postgres(postgres_server, rows, name) for rows in (FEW, MANY))
    assert many <= few * MOST_GROWTH, (few, many)
