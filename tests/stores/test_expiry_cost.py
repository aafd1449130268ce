"""What a look for expired jobs costs does not grow with what waits or runs: counted by the databases themselves."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

from tests.stores.costs import buffers, instructions
from tests.stores.databases import migrate_at
from windlass.stores.plans import moves
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.files import connect
from windlass.testing.postgres_server import PostgresServer

FEW, MANY = 2_000, 20_000
MOST_GROWTH = 2.0
"""A larger index is at most a level deeper; a scan would cost ten times more."""

HOT = """
INSERT INTO windlass_hot (id, queue, target, status, priority, due, fence, attempts, crash_count, node, expires)
SELECT {new_id}, 'default', 'shop:charge', {status}, 2, n, 0, 0, 0, 'node-1', {expires} FROM {numbers}
"""
JOBS = """
INSERT INTO windlass_job (id, queue, target, priority, args, created_at)
SELECT {new_id}, 'default', 'shop:charge', 2, '[[],{{}}]', n FROM {numbers}
"""
ROWS = [("'PENDING'", "NULL"), ("'PENDING'", "9000000000000000"), ("'RUNNING'", "n")]
"""Jobs that never expire, jobs that expire one day, and jobs that started and so expire no more, however late."""


def on_sqlite(path: Path, rows: int) -> int:
    migrate_at(f"sqlite:///{path}")
    numbers = f"(WITH RECURSIVE s(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM s WHERE n < {rows}) SELECT n FROM s)"
    with closing(connect(str(path), "OFF", lambda: 10**15)) as connection:
        fill_sqlite(connection, numbers)
        return instructions(connection, moves.cancel_expired(SqliteDialect(), 500))


def fill_sqlite(connection: sqlite3.Connection, numbers: str) -> None:
    for kind, (status, expires) in enumerate(ROWS):
        new_id = f"'{kind}-' || n"
        connection.execute(HOT.format(new_id=new_id, status=status, expires=expires, numbers=numbers))
    connection.commit()


def on_postgres(server: PostgresServer, rows: int) -> int:
    url = server.create_database()
    migrate_at(url)
    with psycopg.connect(url, autocommit=True) as connection:
        numbers = f"generate_series(1, {rows}) n"
        connection.execute(JOBS.format(new_id="gen_random_uuid()", numbers=numbers).encode())
        for status, expires in ROWS:
            text = HOT.format(new_id="gen_random_uuid()", status=status, expires=expires, numbers=numbers)
            connection.execute(text.encode())
        connection.execute("VACUUM ANALYZE")
        cost = buffers(connection, moves.cancel_expired(PostgresDialect(), 500))
    server.drop_database(url)
    return cost


def test_a_look_for_expired_jobs_on_sqlite(tmp_path: Path):
    """J1.9: along a partial index, which holds what may expire and has not started."""
    few, many = (on_sqlite(tmp_path / f"{rows}.db", rows) for rows in (FEW, MANY))
    assert many <= few * MOST_GROWTH, (few, many)


def test_a_look_for_expired_jobs_on_postgresql(postgres_server: PostgresServer):
    """J1.9: the same."""
    few, many = (on_postgres(postgres_server, rows) for rows in (FEW, MANY))
    assert many <= few * MOST_GROWTH, (few, many)
