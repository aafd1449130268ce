"""What firing costs does not grow with how many schedules there are, nor with their runs: counted by the databases."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from tests.stores.costs import buffers, instructions
from tests.stores.databases import migrate_at
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.plans import ticks
from windlass.stores.plans.schedule_calls import ScheduledCall
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.files import connect
from windlass.testing.postgres_server import PostgresServer

FEW, MANY = 1_000, 10_000
MOST_GROWTH = 2.0
"""A larger index is at most a level deeper; a scan would cost ten times more."""
DUE = 5
NOW = 10**15
CALL = ScheduledCall("shop:charge", "[[],{}]", "default", 2).text

SCHEDULES = """
INSERT INTO windlass_schedule (id, key, state, cron, zone, anchor, jitter_us, misfire, catch_up, overlap, call,
    definition, next_at, skipped, changed_at)
SELECT {new_id}, 'key' || n, 'active', 'every(hours=1)', 'UTC', 0, 0, 'CATCH_UP', 11, 'SKIP', '{call}', 'x',
    CASE WHEN n <= {due} THEN {now} - n ELSE {now} * 2 + n END, 0, 0
FROM {numbers}
"""


def text(new_id: str, numbers: str, now: str) -> str:
    return SCHEDULES.format(new_id=new_id, numbers=numbers, due=DUE, now=now, call=CALL)


Look = Callable[[Dialect], Plan[Any]]


def on_sqlite(path: Path, rows: int, look: Look) -> int:
    migrate_at(f"sqlite:///{path}")
    numbers = f"(WITH RECURSIVE s(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM s WHERE n < {rows}) SELECT n FROM s)"
    connection: sqlite3.Connection
    with closing(connect(str(path), "OFF", lambda: NOW)) as connection:
        connection.execute(text("printf('00000000-0000-7000-8000-%012x', n)", numbers, str(NOW)))
        connection.commit()
        return instructions(connection, look(SqliteDialect()))


def on_postgres(server: PostgresServer, rows: int, look: Look) -> int:
    url = server.create_database()
    migrate_at(url)
    with psycopg.connect(url, autocommit=True) as connection:
        now = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
        connection.execute(text("gen_random_uuid()", f"generate_series(1, {rows}) n", now).encode())
        connection.execute("VACUUM ANALYZE")
        cost = buffers(connection, look(PostgresDialect()))
    server.drop_database(url)
    return cost


def fired(dialect: Dialect) -> Plan[None]:
    found = yield from ticks.fire(dialect, (), 10**12, {"default"})
    assert found.runs == DUE


def next_one(dialect: Dialect) -> Plan[None]:
    assert (yield from ticks.next_tick(dialect, ())) is not None


def test_firing_and_looking_on_sqlite(tmp_path: Path):
    """J9.2: a pass among 10,000 schedules costs what its due ticks cost."""
    for name, look in {"fire": fired, "look": next_one}.items():
        few, many = (on_sqlite(tmp_path / f"{name}{rows}.db", rows, look) for rows in (FEW, MANY))
        assert many <= few * MOST_GROWTH, (name, few, many)


def test_the_look_on_postgresql(postgres_server: PostgresServer):
    """J9.2: the same."""
    few, many = (on_postgres(postgres_server, rows, next_one) for rows in (FEW, MANY))
    assert many <= few * MOST_GROWTH, (few, many)


def due_rows(dialect: Dialect) -> Plan[None]:
    rows = yield Step("due_schedules", {"ids": dialect.ids(())}, literals={"most": ticks.MOST})
    assert len(rows) == DUE


def test_finding_what_is_due_on_postgresql(postgres_server: PostgresServer):
    """J9.2: the statement that locks due schedules; the others get their ids."""
    few, many = (on_postgres(postgres_server, rows, due_rows) for rows in (FEW, MANY))
    assert many <= few * MOST_GROWTH, (few, many)
