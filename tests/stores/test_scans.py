"""No statement reads a whole table of jobs: every plan is asked for on filled tables, and none may scan.

Generic plans on PostgreSQL, since that is what sessions ask for; SQLite's plans are read from its bytecode, which
names what is read by its page and not by an alias.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.stores.databases import migrate_at
from tests.stores.test_queries import names_the_plans_use
from windlass.domain.clock import SystemClock
from windlass.stores import queries
from windlass.stores.plan import Step
from windlass.stores.postgres.session import Statements
from windlass.stores.postgres.url import GENERIC_PLANS
from windlass.stores.sqlite.files import connect
from windlass.stores.sqlite.session import Session
from windlass.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.xdist_group("scans")  # one process fills the tables

LARGE = (
    *("windlass_hot", "windlass_job", "windlass_done", "windlass_attempt", "windlass_flow", "windlass_archive"),
    *("windlass_schedule", "windlass_tick", "windlass_outbox", "windlass_handoff"),
)
ROWS = 20_000
LITERALS = {"chunk": 100, "window": 100, "most": 100}

FILLED = """
INSERT INTO windlass_job (id, queue, target, priority, args, business_key, created_at)
SELECT {id}, 'q' || (n % 5), 'shop:t' || (n % 50), 2, '[[],{{}}]', CASE WHEN n % 100 = 0 THEN 'order:' || n END, n
FROM {numbers};
INSERT INTO windlass_hot (id, queue, target, lane, status, priority, due, fence, attempts, crash_count, node, expires)
SELECT {id}, 'q' || (n % 5), 'shop:t' || (n % 50), CASE WHEN n % 20 = 0 THEN 'resource:r' || (n % 50) END,
    CASE WHEN n % 200 = 1 THEN 'RUNNING' WHEN n % 200 = 2 THEN 'PAUSED' ELSE 'PENDING' END, n % 10, n, 1, 0, 0,
    CASE WHEN n % 200 = 1 THEN 'node' || (n % 7) END, CASE WHEN n % 200 = 3 THEN n END
FROM {numbers} WHERE n <= {half};
INSERT INTO windlass_done (id, queue, target, status, fence, attempts, crash_count, finished_at)
SELECT {id}, 'q' || (n % 5), 'shop:t' || (n % 50),
    CASE WHEN n % 100 = 0 THEN 'FAILED' WHEN n % 100 = 1 THEN 'CANCELED' ELSE 'SUCCEEDED' END, 1, 1, 0, n
FROM {numbers} WHERE n > {half};
INSERT INTO windlass_attempt (job_id, fence, number, ended_at, outcome)
SELECT {id}, 1, 1, n, 'succeeded' FROM {numbers};
INSERT INTO windlass_job_tag (tag, job_id) SELECT 't' || (n % 20), {id} FROM {numbers} WHERE n % 10 = 0;
INSERT INTO windlass_live_key (business_key, holder_id) SELECT 'order:' || n, {id} FROM {numbers} WHERE n % 100 = 0;
INSERT INTO windlass_progress (job_id, fence, done, message, at)
SELECT {id}, 1, 1, '', 1 FROM {numbers} WHERE n % 50 = 0;
INSERT INTO windlass_flow (job_id, flow_id, parent_id, follows, group_id)
SELECT {id}, {flow_id}, CASE WHEN n % 4 > 0 THEN {parent_id} END, CASE WHEN n % 4 > 0 THEN 1 END, {flow_id}
FROM {numbers};
INSERT INTO windlass_group (id, flow_id, total, succeeded, failed, touched_at)
SELECT {id}, {id}, 4, 0, 0, 1 FROM {numbers} WHERE n % 4 = 0;
INSERT INTO windlass_archive (id, queue, target, status, created_at, finished_at, job, flow_id)
SELECT {id}, 'q' || (n % 5), 'shop:t' || (n % 50), 'FAILED', n, n, '{{}}', CASE WHEN n % 2 = 0 THEN {flow_id} END
FROM {numbers};
INSERT INTO windlass_queue (name) SELECT 'q' || n FROM {numbers} WHERE n < 5;
INSERT INTO windlass_gate (name, cap, retry_us, used_at) SELECT 'resource:r' || n, 5, 1, 1 FROM {numbers} WHERE n < 50;
INSERT INTO windlass_node (id, host, pid, version, started_at, heartbeat_at, lease_until, state)
SELECT 'node' || n, 'h', 1, '0', 1, 1, 1, 'alive' FROM {numbers} WHERE n < 7;
INSERT INTO windlass_schedule (id, key, origin, state, cron, zone, anchor, jitter_us, misfire, catch_up, overlap, call,
    definition, next_at, skipped, changed_at)
SELECT {id}, 'nightly:' || n, CASE WHEN n % 2 = 0 THEN 'shop:app' || (n % 10) END,
    CASE WHEN n % 100 = 0 THEN 'retired' ELSE 'active' END, '0 2 * * *',
    CASE WHEN n % 3 = 0 THEN 'Asia/Tokyo' ELSE 'UTC' END, 0, 0, 'CATCH_UP', 11, 'ALLOW', '{{}}', 'x', n, 0, n
FROM {numbers};
INSERT INTO windlass_tick (schedule_id, tick, job_id) SELECT {id}, n, {id} FROM {numbers};
INSERT INTO windlass_outbox (id, channel, about, destination, name, tenant, payload, status, attempts, due, created_at,
    settled_at)
SELECT {id}, 'reject', 'r' || n, 'rejects of p' || (n % 3), 'p', 'default', '{{}}',
    CASE WHEN n % 2 = 0 THEN 'REJECTED' ELSE 'WAITING' END, 0, n, n, n FROM {numbers};
INSERT INTO windlass_handoff (id, publication, subscriber, tenant, key, seen_key, source_id, item, correlation_id,
    payload_hash, status, attempts, due, created_at)
SELECT {id}, 'invoices', 's' || (n % 3), 'default', 'k' || n, 'k' || n, {flow_id}, '0', 'c', 'h',
    CASE WHEN n % 2 = 0 THEN 'ADMITTED' ELSE 'WAITING' END, 0, n, n FROM {numbers}
"""
ABOVE = ("Limit", "LockRows", "Subquery Scan")
"""Nodes that ask for no more rows than are asked of them."""


def filled(new_id: str, numbers: str) -> list[str]:
    """Statements that fill the tables; `new_id` makes an id of the number {n}."""
    ids = {"id": "n", "flow_id": "n - n % 4", "parent_id": "n - 1"}
    made = {name: new_id.format(n=number) for name, number in ids.items()}
    return FILLED.format(**made, numbers=numbers, half=ROWS // 2).split(";")


# ---------------------------------------------------------------------- PostgreSQL


@pytest.fixture(scope="module")
def postgres(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    url = postgres_server.create_database()
    migrate_at(url)
    with psycopg.connect(url, autocommit=True, options=GENERIC_PLANS) as connection:
        for (
            table
        ) in LARGE:  # ten times the pages: planners then see tables as large as real ones, and they are filled at once
            connection.execute(f"ALTER TABLE {table} SET (fillfactor = 10)".encode())
        for text in filled("lpad(to_hex({n}), 32, '0')::uuid", f"generate_series(1, {ROWS}) AS n"):
            connection.execute(text.encode())
        connection.execute("ANALYZE")
        yield connection
    postgres_server.drop_database(url)


def plan_of(connection: psycopg.Connection[Any], text: bytes, parameters: int) -> dict[str, Any]:
    """The generic plan of a statement."""
    connection.execute(b"PREPARE asked AS " + text)
    values = f"({', '.join(['NULL'] * parameters)})" if parameters else ""
    row = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE asked{values}".encode()).fetchone()
    connection.execute("DEALLOCATE asked")
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def nodes_of(plan: dict[str, Any], *, bounded: bool = False) -> Iterator[tuple[dict[str, Any], bool]]:
    """The nodes of a plan, and whether a LIMIT above stops them."""
    bounded = bounded or plan["Node Type"] == "Limit"
    yield plan, bounded
    for part in plan.get("Plans", ()):
        stops = part.get("Parent Relationship") == "Outer" and plan["Node Type"] in (
            "Limit",
            "LockRows",
            "Subquery Scan",
        )
        yield from nodes_of(part, bounded=bounded and stops)


def scans_of_postgres(plan: dict[str, Any], partial: set[str]) -> list[str]:
    """Large tables that a plan reads from end to end, also along an index, unless that is a small partial one."""
    found = []
    for node, bounded in nodes_of(plan):
        if node.get("Relation Name") not in LARGE or node["Node Type"] == "ModifyTable" or bounded:
            continue
        walks = "Index Cond" not in node and node.get("Index Name") not in partial
        if node["Node Type"] == "Seq Scan" or (node["Node Type"].startswith("Index") and walks):
            found.append(f"{node['Node Type']} of {node['Relation Name']}")
    return found


def test_no_statement_scans_a_large_table_on_postgresql(postgres: psycopg.Connection[Any]):
    """Design §3: what costs nothing in an empty database stops a worker in a full one."""
    statements = Statements()
    indexes = postgres.execute("SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%% WHERE %%'")
    partial = {name for (name,) in indexes}
    texts = {name: statements.numbered(Step(name, literals=LITERALS)) for name in names_the_plans_use("postgres")}
    found = {
        name: scans
        for name, (text, parameters, _) in sorted(texts.items())
        if not text.startswith((b"COPY", b"CREATE"))
        and (scans := scans_of_postgres(plan_of(postgres, text, len(parameters)), partial))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "scanned"),
    [
        ("SELECT id FROM windlass_hot WHERE queue = $1 AND lane = $2", ["Seq Scan of windlass_hot"]),
        ("SELECT count(*) FROM windlass_attempt WHERE job_id = $1", []),
        ("SELECT id FROM windlass_done WHERE id > $1 ORDER BY id LIMIT 10", []),
        ("DELETE FROM windlass_job WHERE target = $1", ["Seq Scan of windlass_job"]),
    ],
)
def test_a_scan_on_postgresql_is_found(postgres: psycopg.Connection[Any], text: str, scanned: list[str]):
    assert scans_of_postgres(plan_of(postgres, text.encode(), text.count("$")), set()) == scanned


# ---------------------------------------------------------------------- SQLite


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("scans") / "jobs.db"
    migrate_at(f"sqlite:///{path}")
    connection = connect(str(path), "OFF", SystemClock().micros)
    numbers = f"(WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {ROWS}) SELECT n FROM c)"
    connection.execute("BEGIN")
    for text in filled("printf('00000000-0000-7000-8000-%012x', {n})", numbers):
        connection.execute(text)
    connection.execute("COMMIT")
    yield connection
    connection.close()


def roots_of(connection: sqlite3.Connection) -> dict[int, str]:
    """Large tables and their indexes by their first page, but for partial indexes, which are small."""
    rows = connection.execute("SELECT rootpage, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return {page: name for page, name, table, sql in rows if table in LARGE and "WHERE" not in sql}


def scans_of_sqlite(connection: sqlite3.Connection, text: str, roots: dict[int, str]) -> list[str]:
    """What a statement reads from its first row or its last on: cursors that are put there by no value."""
    parameters = dict.fromkeys(queries._PARAMETER.findall(text))
    program = connection.execute(f"EXPLAIN {text}", parameters).fetchall()
    opened = [row for row in program if row[1] in ("OpenRead", "OpenWrite")]
    cursors = {row[2]: roots.get(row[3]) for row in opened if row[4] == 0}  # 1 is the database of temporary tables
    walked = {cursors[row[2]] for row in program if row[1] in ("Rewind", "Last", "Count") and row[2] in cursors}
    return sorted(name for name in walked if name)


@pytest.mark.parametrize("analysed", [False, True], ids=["as it is", "with statistics"])
def test_no_statement_scans_a_large_table_on_sqlite(sqlite: sqlite3.Connection, *, analysed: bool):
    """Design §3: the same there, whether or not ANALYZE has been run on the file."""
    if analysed:
        sqlite.execute("ANALYZE")
    roots = roots_of(sqlite)
    session = Session.of_writer(sqlite)
    found = {
        name: scans
        for name in sorted(names_the_plans_use("sqlite"))
        if (scans := scans_of_sqlite(sqlite, session._text(queries.load("sqlite")[name], LITERALS), roots))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "scanned"),
    [
        ("SELECT id FROM windlass_hot WHERE queue = :queue AND lane = :lane", ["windlass_hot"]),
        ("SELECT count(*) FROM windlass_attempt", ["windlass_attempt"]),
        ("SELECT id FROM windlass_done WHERE id > :id ORDER BY id LIMIT 10", []),
        ("DELETE FROM windlass_job WHERE target = :target", ["windlass_job"]),
    ],
)
def test_a_scan_on_sqlite_is_found(sqlite: sqlite3.Connection, text: str, scanned: list[str]):
    assert scans_of_sqlite(sqlite, text, roots_of(sqlite)) == scanned
