"""What a claim costs must not grow with what waits: counted by the databases themselves, not by a clock."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql

from tests.stores.databases import migrate_at
from windlass.domain.clock import SystemClock
from windlass.domain.job import Claim
from windlass.domain.transition import Failure, Times, dead_letter, retry_at, succeeded
from windlass.stores.claim_order import ClaimRequest, Head
from windlass.stores.plan import Plan, Step, drive
from windlass.stores.plans import claims
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.postgres.session import Statements
from windlass.stores.postgres.url import GENERIC_PLANS
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.files import connect
from windlass.stores.sqlite.session import Session
from windlass.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.xdist_group("claim_cost")  # one process fills the tables

T = TypeVar("T")

FEW, MANY = 1_000, 100_000
WANTED, CHUNK = 50, 16
MOST_GROWTH = 2.0
"""An index a hundred times larger is one or two levels deeper; a scan or a sort would cost a hundred times more."""

PAST = SystemClock().micros() - 100 * 3_600_000_000
FUTURE = PAST + 200 * 3_600_000_000

DUE_AND_PRIORITY = {
    "all due": f"{PAST} + n, 2",
    "half of high priority in the future": f"CASE n % 2 WHEN 1 THEN {FUTURE} + n ELSE {PAST} + n END, 2 + n % 2 * 7",
    "one due time": f"{PAST}, 2",
    "several levels": f"{PAST} + n * 7919 % 1000003, n % 5",
}
HEADS = [Head("default", level, PAST) for level in (0, 1, 2, 3, 4, 9)]
REQUEST = ClaimRequest("node", HEADS, WANTED, CHUNK, 900_000_000)

NODE = """
INSERT INTO windlass_node (id, host, pid, version, started_at, heartbeat_at, lease_until, state)
VALUES ('node', 'h', 1, '0', 0, 0, 0, 'alive')
"""
JOBS = """
INSERT INTO windlass_job (id, queue, target, priority, args, created_at)
SELECT {new_id}, 'default', 'shop:charge', 2, '[[],{{}}]', 0 FROM {numbers}
"""
WAITING = """
INSERT INTO windlass_hot (id, queue, target, status, due, priority, fence, attempts, crash_count)
SELECT {new_id}, 'default', 'shop:charge', 'PENDING', {due_and_priority}, 0, 0, 0 FROM {numbers}
"""

every_layout = pytest.mark.parametrize("layout", DUE_AND_PRIORITY)


def growth(cost: Callable[[int], int]) -> float:
    """How much dearer a claim is among many waiting jobs than among few."""
    few = cost(FEW)
    return cost(MANY) / few


# ---------------------------------------------------------------------- PostgreSQL

POSTGRES_ID = "lpad(to_hex(n), 32, '0')::uuid"


@pytest.fixture(scope="module")
def postgres(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A database of its own in which many jobs are stored and none waits."""
    url = postgres_server.create_database()
    migrate_at(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(NODE)
        connection.execute(JOBS.format(new_id=POSTGRES_ID, numbers=f"generate_series(1, {MANY}) AS n"))
        connection.execute("VACUUM (ANALYZE) windlass_job")
        yield connection
    postgres_server.drop_database(url)


@every_layout
def test_a_claim_on_postgresql_touches_no_more_buffers_among_many_jobs(postgres: psycopg.Connection[Any], layout: str):
    """J3.1: buffers hit and read by the claim itself, at 1,000 and at 100,000 waiting jobs."""

    def cost(count: int) -> int:
        postgres.execute("TRUNCATE windlass_hot")
        numbers = f"generate_series(1, {count}) AS n"
        waiting = WAITING.format(new_id=POSTGRES_ID, numbers=numbers, due_and_priority=DUE_AND_PRIORITY[layout])
        postgres.execute(waiting)
        postgres.execute("VACUUM (ANALYZE) windlass_hot")
        touched = buffers_touched(postgres)
        print(f"{layout}: {touched} buffers at {count:,}")
        return touched

    assert growth(cost) < MOST_GROWTH


def buffers_touched(connection: psycopg.Connection[Any]) -> int:
    """Of the second of two claims, both undone: the first one pays for what the planner reads of the catalogue."""
    step = next(PostgresDialect().claim(REQUEST, None))
    statements = Statements()
    text = statements.text(statements.query(step), step.literals)
    plan: Any = None
    for _ in range(2):
        with connection.transaction(force_rollback=True):
            answer = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", step.params).fetchone()
            assert answer is not None
            plan = answer[0][0]["Plan"]
    assert plan["Actual Rows"] >= CHUNK
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


MIDDLING = 20_000
"""So many that reading them all is a hundred times the work, so few that a planner is tempted."""
CLAIMED = [
    Claim(f"00000000-0000-0000-0000-{n:012x}", 0, "default", "shop:charge", 0, 0, 2, 0, 0) for n in range(1, 257)
]
TIMES = Times(1, 2, 3)
FAILURE = Failure("ValueError: no", "ValueError")
OUTCOMES = {
    "successes": lambda: PostgresDialect().finish(
        [succeeded(claim, TIMES, None, holds_key=False) for claim in CLAIMED], alone=True
    ),
    "failures": lambda: PostgresDialect().finish(
        [dead_letter(claim, TIMES, FAILURE, "non_retryable", holds_key=False) for claim in CLAIMED], alone=True
    ),
    "retries": lambda: PostgresDialect().requeue([retry_at(claim, TIMES, FAILURE, 1) for claim in CLAIMED]),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_writing_outcomes_on_postgresql_never_reads_all_that_waits(postgres: psycopg.Connection[Any], outcome: str):
    """J4.1: a flush finds its rows one by one in the primary key, planned as the engine has it planned."""
    postgres.execute("TRUNCATE windlass_hot")
    numbers = f"generate_series(1, {MIDDLING}) AS n"
    postgres.execute(WAITING.format(new_id=POSTGRES_ID, numbers=numbers, due_and_priority=DUE_AND_PRIORITY["all due"]))
    postgres.execute("VACUUM (ANALYZE) windlass_hot")
    plan = "\n".join(generic_plan(postgres, next(OUTCOMES[outcome]())))
    assert "windlass_hot_pkey" in plan
    assert "Seq Scan on windlass_hot" not in plan


def generic_plan(connection: psycopg.Connection[Any], step: Step) -> list[str]:
    """The plan that is made once and kept, whatever the values."""
    statements = Statements()
    names = list(step.params)
    text: Any = statements.text(statements.query(step), step.literals)
    prepared = text % {name: f"${number}" for number, name in enumerate(names, 1)}
    connection.execute(f"SET {GENERIC_PLANS.removeprefix('-c ')}")
    connection.execute(f"PREPARE tried AS {prepared}")
    values = sql.SQL(", ").join([sql.Literal(step.params[name]) for name in names])
    try:
        return [row[0] for row in connection.execute(sql.SQL("EXPLAIN EXECUTE tried({})").format(values))]
    finally:
        connection.execute("DEALLOCATE tried")
        connection.execute("RESET plan_cache_mode")


# ---------------------------------------------------------------------- SQLite

SQLITE_ID = "printf('00000000-0000-7000-8000-%012d', n)"


@pytest.fixture(scope="module")
def sqlite(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A file of its own in which many jobs are stored and none waits."""
    path = tmp_path_factory.mktemp("cost") / "jobs.db"
    path.write_bytes(migrated_file.read_bytes())
    connection = connect(str(path), "NORMAL", SystemClock().micros)
    connection.execute(NODE)
    connection.execute(JOBS.format(new_id=SQLITE_ID, numbers=series(MANY)))
    yield connection
    connection.close()


def series(count: int) -> str:
    return f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s)"


@every_layout
def test_a_claim_on_sqlite_takes_no_more_instructions_among_many_jobs(sqlite: sqlite3.Connection, layout: str):
    """J3.1: instructions of SQLite's machine for one claim, at 1,000 and at 100,000 waiting jobs."""

    def cost(count: int) -> int:
        numbers, wanted = series(count), DUE_AND_PRIORITY[layout]
        sqlite.execute("BEGIN IMMEDIATE")
        sqlite.execute(WAITING.format(new_id=SQLITE_ID, numbers=numbers, due_and_priority=wanted))
        taken, claimed = instructions(sqlite, claims.claim(SqliteDialect(), REQUEST))
        assert len(claimed.claims) >= CHUNK
        sqlite.execute("ROLLBACK")
        print(f"{layout}: {taken} instructions at {count:,}")
        return taken

    assert growth(cost) < MOST_GROWTH


def instructions(connection: sqlite3.Connection, plan: Plan[T]) -> tuple[int, T]:
    """Of a plan, and its answer."""
    taken = 0

    def another() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(another, 1)
    answer = drive(plan, next(plan), Session(connection).execute)
    connection.set_progress_handler(None, 0)
    return taken, answer
