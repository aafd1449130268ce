"""What a page of `find` costs must not grow with what has finished or is archived: counted by the databases themselves.

The same for a look for jobs that are old enough to be archived.
"""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.stores.costs import buffers, instructions
from tests.stores.databases import migrate_at
from windlass.domain.clock import SystemClock, from_micros
from windlass.domain.identity import FIRST_ID
from windlass.domain.states import JobStatus
from windlass.stores.plan import Plan
from windlass.stores.plans import archive, search
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.postgres.url import GENERIC_PLANS
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.files import connect
from windlass.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.xdist_group("find_cost")  # one process fills the tables

FEW, MANY = 30_000, 150_000
MOST_GROWTH = 1.5
"""An index five times larger is at most a level deeper; a scan or a sort would cost five times more."""
PAGE = 20
WINDOW = 256
"""Rows that a page of twenty looks at, if they fit."""
FEW_A_ROW = 12
"""Each row of a page is looked up in up to four tables, two or three buffers each."""

JOBS = """
INSERT INTO windlass_job (id, queue, target, priority, args, business_key, created_at)
SELECT {new_id}, 'default', 'shop:charge', 2, '[[],{{}}]', CASE WHEN n = 7 THEN 'order:7' END, n FROM {numbers}
"""
DONE = """
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, finished_at)
SELECT {new_id}, 'default', 'shop:charge', CASE WHEN n % 100 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, 1, 1, 0, n
FROM {numbers}
"""
TAGS = "INSERT INTO windlass_job_tag (tag, job_id) SELECT 'rare', {new_id} FROM {numbers} WHERE n <= 300"
ARCHIVED = """
INSERT INTO windlass_archive (id, queue, target, status, business_key, created_at, finished_at, job)
SELECT {old_id}, 'default', 'shop:charge', CASE WHEN n % 100 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END,
    CASE WHEN n = 7 THEN 'order:7' END, n, n, '{{}}'
FROM {numbers}
"""
STATEMENTS = (JOBS, DONE, TAGS, ARCHIVED)

ASKED = {
    "anything": search.Filters(),
    "succeeded": search.Filters(status=JobStatus.SUCCEEDED),
    "failed": search.Filters(status=JobStatus.FAILED),
    "pending": search.Filters(status=JobStatus.PENDING),
    "running": search.Filters(status=JobStatus.RUNNING),
    "paused": search.Filters(status=JobStatus.PAUSED),
    "a tag": search.Filters(tag="rare"),
    "a business key": search.Filters(business_key="order:7"),
    "canceled": search.Filters(status=JobStatus.CANCELED),
    "created lately": search.Filters(created_after=from_micros(1)),
}
each_filter = pytest.mark.parametrize("asked", ASKED)


def growth(cost: Callable[[int], int], name: str) -> float:
    """How much dearer a page is among many finished jobs than among few."""
    few, many = cost(FEW), cost(MANY)
    print(f"{name}: {few} at {FEW:,}, {many} at {MANY:,}")
    return many / few


# ---------------------------------------------------------------------- PostgreSQL

POSTGRES_ID = "lpad(to_hex(n), 32, '0')::uuid"
POSTGRES_OLD_ID = "lpad(to_hex(n + 1000000), 32, '0')::uuid"


@pytest.fixture(scope="module")
def postgres(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A database with many finished jobs."""
    url = postgres_server.create_database()
    migrate_at(url)
    with psycopg.connect(url, autocommit=True, options=GENERIC_PLANS) as connection:
        connection.prepare_threshold = 0
        numbers = f"generate_series(1, {MANY}) AS n"
        for statement in STATEMENTS:
            connection.execute(statement.format(new_id=POSTGRES_ID, old_id=POSTGRES_OLD_ID, numbers=numbers))
        connection.execute("VACUUM (ANALYZE)")
        yield connection
    postgres_server.drop_database(url)


@each_filter
def test_a_page_on_postgresql_touches_a_few_buffers_a_row_among_many_finished_jobs(
    postgres: psycopg.Connection[Any], asked: str
):
    """api.md, Following: bounded by the rows of a page, whatever has finished: all of it would be 4,000 buffers."""
    touched = buffers(postgres, search.find_ids(PostgresDialect(), ASKED[asked], None, PAGE))
    print(f"{asked}: {touched} buffers at {MANY:,}")
    assert touched < FEW_A_ROW * WINDOW


def test_looking_for_old_jobs_on_postgresql_touches_a_few_buffers_a_row(postgres: psycopg.Connection[Any]):
    """J7.7: whatever has finished: without an order of its own it would sort all of it."""
    for age_us, most in ((0, FEW_A_ROW * archive.WINDOW), (10**18, FEW_A_ROW * archive.MOST_LOOKED_AT)):
        plan = archive.old_jobs(PostgresDialect(), age_us, FIRST_ID, PAGE, ids_have_times=False)
        touched = buffers(postgres, plan)
        print(f"old jobs: {touched} buffers at {MANY:,}")
        assert touched < most / 10


# ---------------------------------------------------------------------- SQLite

SQLITE_ID = "printf('00000000-0000-7000-8000-%012d', n)"
SQLITE_OLD_ID = "printf('00000000-0000-7000-8000-%012d', n + 1000000)"


@pytest.fixture(scope="module")
def sqlite(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, sqlite3.Connection]]:
    """Two files, with few and with many finished jobs."""
    connections = {}
    for count in (FEW, MANY):
        path = tmp_path_factory.mktemp("find") / f"{count}.db"
        path.write_bytes(migrated_file.read_bytes())
        connection = connections[count] = connect(str(path), "NORMAL", SystemClock().micros)
        numbers = f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s)"
        for statement in STATEMENTS:
            connection.execute(statement.format(new_id=SQLITE_ID, old_id=SQLITE_OLD_ID, numbers=numbers))
    yield connections
    for connection in connections.values():
        connection.close()


@each_filter
def test_a_page_on_sqlite_takes_no_more_instructions_among_many_finished_jobs(
    sqlite: dict[int, sqlite3.Connection], asked: str
):
    """api.md, Following: the same there, in instructions of SQLite's machine."""

    def cost(count: int) -> int:
        return instructions(sqlite[count], search.find_ids(SqliteDialect(), ASKED[asked], None, PAGE))

    assert growth(cost, asked) < MOST_GROWTH


@pytest.mark.parametrize("age_us", [0, 10**18], ids=["all are old", "none is"])
def test_looking_for_old_jobs_on_sqlite_takes_no_more_instructions(sqlite: dict[int, sqlite3.Connection], age_us: int):
    """J7.7: a bounded number of rows, whatever has finished."""

    def look() -> Plan[Any]:
        return archive.old_jobs(SqliteDialect(), age_us, FIRST_ID, PAGE, ids_have_times=False)

    assert growth(lambda count: instructions(sqlite[count], look()), "old jobs") < MOST_GROWTH
