"""PostgreSQL: what a statement costs does not depend on statistics, whenever they were taken.

A session keeps its plans. They may have been made for a new database, or right after VACUUM ANALYZE has found few rows
on many pages, as it does when a queue has just been drained; then a hundred thousand jobs come.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.stores.databases import migrate_at
from tests.stores.test_queries import names_the_plans_use
from tests.stores.test_scans import LARGE, LITERALS, filled, nodes_of, plan_of
from windlass.domain.dependencies import Follows
from windlass.domain.job import Claim
from windlass.domain.transition import Failure, Times, dead_letter, retry_at, succeeded
from windlass.stores.claim_order import ClaimRequest, Head
from windlass.stores.plan import Step
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.postgres.session import Statements
from windlass.stores.postgres.text import ids
from windlass.stores.postgres.url import conninfo
from windlass.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.xdist_group("statistics")  # one process fills the tables

GROWING = {
    *LARGE,
    *("windlass_execution", "windlass_transition", "windlass_item", "windlass_part", "windlass_group"),
    *("windlass_signal_wait", "windlass_key", "windlass_live_key", "windlass_progress"),
    *("windlass_external_wait", "windlass_handoff", "windlass_outbox"),
}
RARE = {
    "groups_of_flows",  # for operators, the archive and the purge: all of them begin with ids, and read a table
    "reopened_groups",  # in the order of an index at worst, a hundred thousand rows in some milliseconds
    "reopening_groups",
    "flows_of_jobs",
    "forget_revivals",
    "delete_empty_lane",  # reads jobs that are paused or wait for signals
    "forget_lost_nodes",  # reads what runs, once in a while
    "left_parked",  # so do checks of the sweeper
    "recount_children",
    "recount_members",
    "purge_external_waits",
}
PICKY = ("claim", "claim_level", "claim_lane_level", "claim_gated", "heads", "waiting_lanes")
"""Statements that read the first few of many rows."""
KEPT = {"windlass_flow", "windlass_group", "windlass_execution"}
"""Tables with indexes that have the id behind other columns, which the planner may prefer while statistics say that
there is at most one row. Rows stay here until their retention ends, so ANALYZE corrects that once and for all; where
much depends on it (`j_in_flow`), the statement asks for the order of the primary key."""
WITH_PARTIAL = {"windlass_execution", "windlass_external_wait", "windlass_handoff", "windlass_outbox"}
"""Tables of which no partial index is read whole either, on any server. From PostgreSQL 18 on that holds for all but
`windlass_flow`; older planners still take such an index for some statements about other tables."""
ID = "lpad(to_hex({n}), 32, '0')::uuid"
BLOAT = 4_000
LEADING = """
SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE c.relname ~ '^windlass' AND i.indpred IS NULL
"""
"""The first column of every index that is not partial: a condition on another one reads all entries. Of a partial index
it is enough to have any condition; only those of some tables are checked (see `WITH_PARTIAL`)."""


def nothing(connection: psycopg.Connection[Any]) -> None:
    """Leave new tables as they are: without any statistics."""


def vacuum_new(connection: psycopg.Connection[Any]) -> None:
    connection.execute("VACUUM ANALYZE")


def left(rows: int) -> Callable[[psycopg.Connection[Any]], None]:
    """Fill the tables, delete all but a few rows, and take statistics of the pages that stay."""

    def drain(connection: psycopg.Connection[Any]) -> None:
        fill(connection)
        for table in LARGE:
            connection.execute(
                f"DELETE FROM {table} WHERE ctid NOT IN (SELECT ctid FROM {table} LIMIT {rows})".encode()
            )
        connection.execute("VACUUM (ANALYZE, TRUNCATE false)")

    return drain


def empty_again(connection: psycopg.Connection[Any]) -> None:
    """Take statistics of full tables, then delete everything."""
    fill(connection)
    connection.execute("ANALYZE")
    for table in LARGE:
        connection.execute(f"DELETE FROM {table}".encode())


def fill(connection: psycopg.Connection[Any]) -> None:
    for text in filled(ID, f"generate_series(1, {BLOAT}) AS n"):
        connection.execute(text.encode())


MOMENTS: dict[str, Callable[[psycopg.Connection[Any]], None]] = {
    "never analyzed": nothing,
    "new, vacuumed": vacuum_new,
    "no row on many pages": left(0),
    "one row on many pages": left(1),
    "five rows on many pages": left(5),
    "of rows that are gone": empty_again,
}


@pytest.fixture(scope="module", params=MOMENTS)
def at_a_moment(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A session of ours on a database whose statistics were taken then, and never again."""
    url = postgres_server.create_database()
    migrate_at(url)
    with psycopg.connect(conninfo(url, pooled=False), autocommit=True, prepare_threshold=None) as connection:
        for (table,) in connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^windlass'"
        ):
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
        for table in LARGE:  # ten times the pages
            connection.execute(f"ALTER TABLE {table} SET (fillfactor = 10)".encode())
        MOMENTS[request.param](connection)
        yield connection
    postgres_server.drop_database(url)


# ---------------------------------------------------------------------- the shape of plans


def scans_of(plan: dict[str, Any], leading: dict[str, str], with_partial: set[str]) -> list[str]:
    """Growing tables of which a plan reads all rows, or all entries of an index."""
    found = []
    for node, bounded in nodes_of(plan):
        if bounded or node.get("Relation Name") not in GROWING or node["Node Type"] == "ModifyTable":
            continue
        column, condition = leading.get(node.get("Index Name", "")), node.get("Index Cond", "")
        if column is None and node["Relation Name"] not in with_partial:
            continue
        anywhere = r"\w+" if node["Relation Name"] in KEPT or column is None else rf"\b{column}\b"
        walks = re.search(anywhere, condition) is None
        if node["Node Type"] == "Seq Scan" or (node["Node Type"].startswith("Index") and walks):
            found.append(f"{node['Node Type']} of {node['Relation Name']} {node.get('Index Name', '')}")
    return found


def sorts_of(plan: dict[str, Any], limited: bool = False) -> list[str]:
    """Sorts and bitmaps of all waiting jobs below a LIMIT: they read everything before the first row comes out."""
    kind, limited = plan["Node Type"], limited or plan["Node Type"] == "Limit"
    jobs = [node for node, _ in nodes_of(plan) if node.get("Relation Name") == "windlass_hot"]
    found = [kind] if limited and jobs and (kind.startswith("Bitmap") or kind.endswith("Sort")) else []
    return found + [text for part in plan.get("Plans", ()) for text in sorts_of(part, limited)]


def test_no_statement_scans_a_growing_table_whatever_its_statistics(at_a_moment: psycopg.Connection[Any]):
    """Design §3: rows are looked up by an index or read in its order, also where a table was empty lately."""
    statements = Statements()
    leading = dict(at_a_moment.execute(LEADING).fetchall())
    texts = {name: statements.numbered(Step(name, literals=LITERALS)) for name in names_the_plans_use("postgres")}
    plans = {
        name: plan_of(at_a_moment, text, len(parameters))
        for name, (text, parameters, _) in sorted(texts.items())
        if not text.startswith((b"COPY", b"CREATE"))
    }
    is_old = at_a_moment.info.server_version < 180_000
    checked = WITH_PARTIAL if is_old else GROWING - {"windlass_flow"}
    assert {name: scans for name in plans.keys() - RARE if (scans := scans_of(plans[name], leading, checked))} == {}
    assert {name: sorts for name in PICKY if (sorts := sorts_of(plans[name]))} == {}


# ---------------------------------------------------------------------- what a burst costs then

BURST = 6_000
RUNNING = 300
FIRST = 1_000_000
"""The number of the first job of the burst."""
JOBS = f"""
INSERT INTO windlass_job (id, queue, target, priority, args, created_at)
SELECT {ID.format(n="n")}, 'default', 'shop:charge', 2, '[[],{{}}]', 0
FROM generate_series({FIRST}, {FIRST + BURST - 1}) AS n;
INSERT INTO windlass_hot (id, queue, target, status, due, priority, fence, attempts, crash_count, node)
SELECT {ID.format(n="n")}, 'default', 'shop:charge',
    CASE WHEN n < {FIRST + RUNNING} THEN 'RUNNING' ELSE 'PENDING' END, n, 2 + n % 2, 1, 0, 0,
    CASE WHEN n < {FIRST + RUNNING} THEN 'node' END
FROM generate_series({FIRST}, {FIRST + BURST - 1}) AS n;
INSERT INTO windlass_flow (job_id, flow_id, parent_id, follows)
SELECT {ID.format(n="n")}, {ID.format(n="n")}, {ID.format(n=f"n - {BURST // 2}")}, 1
FROM generate_series({FIRST + BURST // 2}, {FIRST + BURST - 1}) AS n;
INSERT INTO windlass_node (id, host, pid, version, started_at, heartbeat_at, lease_until, state)
VALUES ('node', 'h', 1, '0', 0, 0, 0, 'alive') ON CONFLICT (id) DO NOTHING;
INSERT INTO windlass_queue (name) VALUES ('default') ON CONFLICT (name) DO NOTHING
"""
CLAIMS = [Claim(f"{n:032x}", 1, "default", "shop:charge", 0, 0, 2, n, 0) for n in range(FIRST, FIRST + RUNNING)]
TIMES, FAILURE = Times(1, 2, 3), Failure("ValueError: no", "ValueError")
DIALECT = PostgresDialect()
OF_CLAIMS = ids([claim.job_id for claim in CLAIMS])


def request_of(*levels: int) -> ClaimRequest:
    return ClaimRequest("node", [Head("default", level, 0) for level in levels], 100, 64, 900_000_000)


HOT: dict[str, Callable[[], Step]] = {
    "claim of a level": lambda: next(DIALECT.claim(request_of(2), None)),
    "claim": lambda: next(DIALECT.claim(request_of(2, 3), None)),
    "heads": lambda: next(DIALECT.heads({})),
    "successes": lambda: next(
        DIALECT.finish([succeeded(claim, TIMES, None, holds_key=False) for claim in CLAIMS], alone=True)
    ),
    "failures": lambda: next(
        DIALECT.finish(
            [dead_letter(one, TIMES, FAILURE, "non_retryable", holds_key=False) for one in CLAIMS], alone=True
        )
    ),
    "retries": lambda: next(DIALECT.requeue([retry_at(claim, TIMES, FAILURE, 1) for claim in CLAIMS])),
    "cancel": lambda: Step("lock_live", {"ids": OF_CLAIMS}),
    "followers": lambda: Step("release_followers", {"ids": OF_CLAIMS, "follows": Follows.THEN.value, "most": 1_000}),
    "recovery": lambda: Step("orphaned_jobs", {"node": "node"}),
    "outcomes": lambda: Step("outcomes", {"ids": OF_CLAIMS}),
}


def kept(name: str) -> sql.Identifier:
    return sql.Identifier(f"kept {name}")


def carry_out(connection: psycopg.Connection[Any], name: str, step: Step) -> tuple[int, int]:
    """Buffers and rows that a kept plan touches; what it writes is rolled back."""
    names = Statements().numbered(step).names
    values = sql.SQL("({})").format(sql.SQL(", ").join(sql.Literal(step.params[one]) for one in names))
    text = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE {}{}")
    found: Any = None
    for _ in range(2):  # the first time may read the catalog, and set hints
        with connection.transaction(force_rollback=True):
            row = connection.execute(text.format(kept(name), values if names else sql.SQL(""))).fetchone()
        assert row is not None
        found = row[0][0]["Plan"]
    rows = sum(
        node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        + node["Actual Loops"] * node.get("Rows Removed by Join Filter", 0)
        for node, _ in nodes_of(found)
    )
    return found["Shared Hit Blocks"] + found["Shared Read Blocks"], int(rows)


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Have all plans made now, by carrying them out."""
    for name, step in HOT.items():
        text = Statements().numbered(step()).text.decode()
        connection.execute(sql.SQL("PREPARE {} AS {}").format(kept(name), sql.SQL(text)))
        carry_out(connection, name, step())


def test_the_cost_of_a_burst_does_not_depend_on_statistics(at_a_moment: psycopg.Connection[Any]):
    """J3.1, J4.1: plans that were made before a burst touch as many buffers and rows as plans that were made for it."""
    prepare(at_a_moment)
    for text in JOBS.split(";"):
        at_a_moment.execute(text.encode())
    before = {name: carry_out(at_a_moment, name, step()) for name, step in HOT.items()}
    at_a_moment.execute("DEALLOCATE ALL")
    at_a_moment.execute("ANALYZE")
    prepare(at_a_moment)
    after = {name: carry_out(at_a_moment, name, step()) for name, step in HOT.items()}
    print(before, after, sep="\n")
    worse = {
        name: (before[name], after[name])
        for name in HOT
        if any(one > 1.5 * other + 100 for one, other in zip(before[name], after[name], strict=True))
    }
    assert worse == {}
    assert max(rows for _, rows in before.values()) < 20 * RUNNING
