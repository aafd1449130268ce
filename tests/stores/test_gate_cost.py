"""What a look and a claim cost must not grow with what waits behind gates: counted by the databases, not by a clock."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.stores.costs import run_step
from tests.stores.databases import migrate_at
from tests.stores.test_claim_cost import (
    MANY,
    MOST_GROWTH,
    NODE,
    PAST,
    POSTGRES_ID,
    SQLITE_ID,
    growth,
    instructions,
    series,
)
from windlass.domain.circuit import Circuit
from windlass.domain.clock import SystemClock
from windlass.stores.claim_order import ClaimRequest
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step, drive
from windlass.stores.plans import claims, limits, queues
from windlass.stores.plans.limits import Limit
from windlass.stores.postgres import session
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.postgres.session import Statements
from windlass.stores.postgres.url import GENERIC_PLANS
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.files import connect
from windlass.stores.sqlite.session import Session
from windlass.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.xdist_group("gate_cost")  # one process fills the tables

PLAIN, WANTED = 100, 50
LANES = {
    "full lane": "'resource:r'",
    "full keys": "'resource:r/' || (n % 500)",
    "open circuit": "'circuit:c'",
    "full queue": "NULL",
    "free lane": "'resource:free'",
    "free keys": "'resource:free/' || (n % 10)",
    "closed circuit": "'circuit:closed'",
}
SHUT = Limit(0, None, None, 5_000_000)
ROOMY = Limit(1_000_000, None, None, 5_000_000)

WAITING = """
INSERT INTO windlass_hot (id, queue, target, lane, status, due, priority, fence, attempts, crash_count)
SELECT {new_id}, '{queue}', 'shop:charge', {lane}, 'PENDING', {due} + n, 2, 0, 0, 0 FROM {numbers}
"""
JOBS = """
INSERT INTO windlass_job (id, queue, target, priority, args, created_at)
SELECT id, queue, target, 2, '[[],{}]', 0 FROM windlass_hot WHERE queue = 'plain'
"""
QUEUES = "INSERT INTO windlass_queue (name) VALUES ('held'), ('plain')"

every_shape = pytest.mark.parametrize("shape", LANES)


def set_gates(dialect: Dialect, shape: str) -> Plan[None]:
    """Nothing of what is held may pass, and all of what is free."""
    yield from limits.configure_resource(dialect, "r", SHUT)
    yield from limits.configure_resource(dialect, "free", ROOMY)
    if shape == "full queue":
        yield from limits.limit_queue(dialect, "held", SHUT)
    if shape == "open circuit":
        yield from limits.steer_circuit(dialect, "c", Circuit.opened_by_hand)


def look_and_claim(dialect: Dialect) -> Plan[int]:
    """One look, and a claim that asks every gate it saw; answers how many were claimed."""
    yield Step("store_now")  # in one transaction: a look alone is made without
    found = yield from queues.heads(dialect, lambda _: True, lambda _: True)
    request = ClaimRequest("node", found.heads, WANTED, 64, 900_000_000, found.limited)
    claimed = yield from claims.claim(dialect, request)
    return len(claimed.claims)


def statements_for(new_id: str, numbers: Callable[[int], str], shape: str, count: int) -> list[str]:
    held = WAITING.format(new_id=new_id, queue="held", lane=LANES[shape], due=PAST, numbers=numbers(count))
    beside = new_id.replace("n)", f"n + {MANY})")
    plain = WAITING.format(new_id=beside, queue="plain", lane="NULL", due=PAST, numbers=numbers(PLAIN))
    return [NODE, QUEUES, held, plain, JOBS]


# ---------------------------------------------------------------------- PostgreSQL


@pytest.fixture(scope="module")
def postgres(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A database of its own, planned for as the engine has it planned."""
    url = postgres_server.create_database()
    migrate_at(url)
    with psycopg.connect(url, autocommit=True) as connection:
        session.prepare_connection(connection)
        connection.prepare_threshold = 2
        connection.execute(f"SET {GENERIC_PLANS.removeprefix('-c ')}".encode())
        yield connection
    postgres_server.drop_database(url)


@every_shape
def test_a_look_and_a_claim_on_postgresql_touch_no_more_buffers_among_many_jobs_behind_gates(
    postgres: psycopg.Connection[Any], shape: str
):
    """J3.1, J3.4: buffers hit and read by both, at 1,000 and at 100,000 jobs behind gates that let none or all pass."""

    def cost(count: int) -> int:
        postgres.execute("TRUNCATE windlass_hot, windlass_job, windlass_queue, windlass_node, windlass_gate")
        for statement in statements_for(POSTGRES_ID, lambda n: f"generate_series(1, {n}) AS n", shape, count):
            postgres.execute(statement.encode())
        postgres.execute("VACUUM (ANALYZE) windlass_hot")
        _play(postgres, set_gates(PostgresDialect(), shape), [])
        touched: list[int] = []
        for _ in range(2):  # the first one pays for what the planner reads of the catalogue, and for new keys' gates
            touched.clear()
            with postgres.transaction(force_rollback=True):
                assert _play(postgres, look_and_claim(PostgresDialect()), touched) == WANTED
        print(f"{shape}: {sum(touched)} buffers at {count:,}")
        return sum(touched)

    assert growth(cost) < MOST_GROWTH


def _play(connection: psycopg.Connection[Any], plan: Plan[Any], touched: list[int]) -> Any:
    """Run a plan; what each of its statements touches is found out just before, and undone."""
    statements = Statements()

    def execute(step: Step) -> Any:
        if step.rows is None:
            text = statements.text(statements.query(step), step.literals)
            explain = b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + text.encode()
            with connection.transaction(force_rollback=True):
                answer = connection.execute(explain, step.params).fetchone()
            assert answer is not None
            plan_found = answer[0][0]["Plan"]
            touched.append(int(plan_found["Shared Hit Blocks"] + plan_found["Shared Read Blocks"]))
        return run_step(connection, statements, step)

    return drive(plan, next(plan), execute)


# ---------------------------------------------------------------------- SQLite


@pytest.fixture(scope="module")
def sqlite(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A file of its own."""
    path = tmp_path_factory.mktemp("gates") / "jobs.db"
    path.write_bytes(migrated_file.read_bytes())
    connection = connect(str(path), "NORMAL", SystemClock().micros)
    yield connection
    connection.close()


@every_shape
def test_a_look_and_a_claim_on_sqlite_take_no_more_instructions_among_many_jobs_behind_gates(
    sqlite: sqlite3.Connection, shape: str
):
    """J3.1, J3.4: instructions of SQLite's machine for both, at 1,000 and at 100,000 jobs behind gates."""

    def cost(count: int) -> int:
        sqlite.execute("BEGIN IMMEDIATE")
        for statement in statements_for(SQLITE_ID, series, shape, count):
            sqlite.execute(statement)
        setting = set_gates(SqliteDialect(), shape)
        drive(setting, next(setting), Session(sqlite).execute)
        taken, claimed = instructions(sqlite, look_and_claim(SqliteDialect()))
        assert claimed == WANTED
        sqlite.execute("ROLLBACK")
        print(f"{shape}: {taken} instructions at {count:,}")
        return taken

    assert growth(cost) < MOST_GROWTH
