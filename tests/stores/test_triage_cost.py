"""What looking through dead letters, re-driving and purging cost must not grow with their number."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.stores.costs import buffers, instructions
from tests.stores.databases import migrate_at
from windlass.domain.clock import SystemClock
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.plans import dead_letters, redrives, triage
from windlass.stores.plans.dead_letters import AuditEntry
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.postgres.url import GENERIC_PLANS
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.files import connect
from windlass.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.xdist_group("triage_cost")  # one process fills the tables

FEW, MANY = 5_000, 25_000
MOST_GROWTH = 1.5
"""An index five times larger is at most a level deeper; a scan or a sort would cost five times more."""
BATCH = 20
MOST_BUFFERS = 1_500
"""For a batch of twenty; any scan of so many dead letters would be more."""

JOBS = """
INSERT INTO windlass_job (id, queue, target, priority, args, created_at)
SELECT {new_id}, 'default', 'shop:charge', 2, '[[],{{}}]', n FROM {numbers}
"""
DONE = """
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, finished_at)
SELECT {new_id}, 'default', 'shop:charge', 'FAILED', 1, 1, 0, n FROM {numbers}
"""
LETTERS = """
INSERT INTO windlass_dead_letter (job_id, fingerprint, envelope, created_at, hidden, target, queue, error_class, reason,
    raised, kind)
SELECT {new_id}, 'f' || (n % 50), '{{"errorMessage":"{filler}"}}', n, CASE WHEN n % 5 = 0 THEN 1 ELSE 0 END,
    'shop:t' || (n % 50), 'q' || (n % 50), 'E' || (n % 50), 'r' || (n % 50), 0,
    CASE WHEN n % 50 = 7 THEN 'execution' ELSE 'job' END
FROM {numbers}
"""
GROUPS = """
INSERT INTO windlass_dead_letter_group (fingerprint, target, error_class, sample, count, last_at, alert_id, alert_at)
SELECT fingerprint, 'shop:charge', 'E', 'x', count(*), 1, {no_id}, 1 FROM windlass_dead_letter GROUP BY fingerprint
"""
ENTRY = AuditEntry("00000000-0000-7000-8000-000000000001", "ann", "dead_letters.redrive", 0, {})

FILTERS = {
    "anything": triage.LetterFilters(),
    "fingerprint": triage.LetterFilters(fingerprint="f7"),
    "target": triage.LetterFilters(target="shop:t7"),
    "queue": triage.LetterFilters(queue="q7"),
    "error_class": triage.LetterFilters(error_class="E7"),
    "reason": triage.LetterFilters(reason="r7"),
    "kind": triage.LetterFilters(kind="execution"),
    "time": triage.LetterFilters(after=100, before=900),
}


def page(asked: triage.LetterFilters) -> Callable[[Dialect], Plan[Any]]:
    return lambda dialect: triage.page(dialect, asked, None, BATCH)


def redrive(asked: triage.LetterFilters) -> Callable[[Dialect], Plan[Any]]:
    return lambda dialect: redrives.redrive(dialect, asked, None, BATCH, (), ENTRY)


PLANS: dict[str, Callable[[Dialect], Plan[Any]]] = {
    **{f"page by {name}": page(asked) for name, asked in FILTERS.items()},
    **{f"re-drive by {name}": redrive(asked) for name, asked in FILTERS.items()},
    "groups": lambda dialect: triage.groups(dialect, triage.LetterFilters(), BATCH),
    "groups of a target": lambda dialect: triage.groups(dialect, triage.LetterFilters(target="shop:charge"), BATCH),
    "purge": lambda dialect: dead_letters.purge(dialect, 0, BATCH),
    "purge of a kind": lambda dialect: dead_letters.purge(dialect, 0, BATCH, kind="execution"),
}
each_plan = pytest.mark.parametrize("name", PLANS)


def filled(number: int, new_id: str, no_id: str, numbers: str) -> list[str]:
    """Statements that make so many dead letters, each with a long text."""
    values = {"new_id": new_id, "no_id": no_id, "numbers": numbers.format(number=number), "filler": "x" * 500}
    return [statement.format(**values) for statement in (JOBS, DONE, LETTERS, GROUPS)]


@pytest.fixture(scope="module")
def postgres(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A database with many dead letters."""
    url = postgres_server.create_database()
    migrate_at(url)
    with psycopg.connect(url, autocommit=True, options=GENERIC_PLANS) as connection:
        connection.prepare_threshold = 0
        no_id = "'00000000-0000-7000-8000-000000000000'::uuid"
        for statement in filled(MANY, "lpad(to_hex(n), 32, '0')::uuid", no_id, "generate_series(1, {number}) AS n"):
            connection.execute(statement.encode())
        connection.execute("VACUUM (ANALYZE)")
        yield connection
    postgres_server.drop_database(url)


@each_plan
def test_on_postgresql_a_batch_touches_few_buffers(postgres: psycopg.Connection[Any], name: str):
    """J5.7, J5.6: bounded by what it returns, whatever else has died."""
    with postgres.transaction(force_rollback=True):
        touched = buffers(postgres, PLANS[name](PostgresDialect()))
    print(f"{name}: {touched} buffers at {MANY:,}")
    assert touched < MOST_BUFFERS


@pytest.fixture(scope="module")
def sqlite(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, sqlite3.Connection]]:
    """Two files, with few and with many dead letters."""
    connections = {}
    numbers = "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {number}) SELECT n FROM s)"
    for count in (FEW, MANY):
        path = tmp_path_factory.mktemp("triage") / f"{count}.db"
        path.write_bytes(migrated_file.read_bytes())
        connection = connections[count] = connect(str(path), "NORMAL", SystemClock().micros)
        for statement in filled(count, "printf('00000000-0000-7000-8000-%012d', n)", "'x'", numbers):
            connection.execute(statement)
    yield connections
    for connection in connections.values():
        connection.close()


@each_plan
def test_on_sqlite_a_batch_takes_no_more_instructions_among_many(sqlite: dict[int, sqlite3.Connection], name: str):
    """J5.7, J5.6: the same there, in instructions of SQLite's machine."""
    taken = {}
    for count, connection in sqlite.items():
        connection.execute("BEGIN")
        taken[count] = instructions(connection, PLANS[name](SqliteDialect()))
        connection.execute("ROLLBACK")
    print(f"{name}: {taken}")
    assert taken[MANY] / taken[FEW] < MOST_GROWTH
