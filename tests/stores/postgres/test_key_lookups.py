"""PostgreSQL: keys of several columns are looked up by their unique index, also while their table grows from nothing.

Sessions keep their plans. While another index that begins with the same columns is a level lower, it costs less to the
planner; all that it has for those columns would then be read for every key, for as long as the session lives.
"""

import psycopg
import pytest

from tests.stores.databases import migrate_at
from tests.stores.test_scans import LITERALS, nodes_of, plan_of
from windlass.stores.plan import Step
from windlass.stores.postgres.session import Statements
from windlass.stores.postgres.url import conninfo
from windlass.testing.postgres_server import PostgresServer

LONG = "repeat(gen_random_uuid()::text, 2)"
FILL = {
    "windlass_execution": f"""
        INSERT INTO windlass_execution (id, tenant, pipeline, pipeline_version, definition_hash, key, input_hash, dlq,
            status, row_version, written_by, cursor, attempt, value_version, stage, streams, filled, emitted, cut,
            rejected, paused, source, awaits, created_at, updated_at)
        SELECT gen_random_uuid(), 'default', 'billing', '1', '', {LONG}, '', 0,
            'OPEN', 1, '', 0, 1, 1, 0, 0, 0, 0, '', 0, 0, '', 0, 0, 0
        FROM generate_series(1, 20) n""",
    "windlass_handoff": f"""
        INSERT INTO windlass_handoff (id, publication, subscriber, tenant, key, seen_key, source_id, item,
            correlation_id, payload_hash, status, attempts, created_at)
        SELECT gen_random_uuid(), 'invoices', 'billing', 'default', {LONG}, {LONG}, gen_random_uuid(), '',
            '', '', 'ADMITTED', 0, 0
        FROM generate_series(1, 20) n""",
}


@pytest.mark.parametrize(
    ("name", "table"),
    [("find_executions_of_keys", "windlass_execution"), ("holders_of_handoffs", "windlass_handoff")],
)
def test_keys_are_looked_up_by_their_unique_index(postgres_server: PostgresServer, name: str, table: str):
    """P3.1, P7.2: whenever the plan of a session was made."""
    text, parameters, _ = Statements().numbered(Step(name, literals=LITERALS))
    url = postgres_server.create_database()
    migrate_at(url)
    with psycopg.connect(conninfo(url, pooled=False), autocommit=True, prepare_threshold=None) as connection:
        for _ in range(20):
            nodes = [node for node, _ in nodes_of(plan_of(connection, text, len(parameters)))]
            used = {node.get("Index Name") for node in nodes if node.get("Relation Name") == table}
            assert used == {f"{table}_key"}
            connection.execute(FILL[table].encode())
    postgres_server.drop_database(url)
