"""PostgreSQL: a boundary of a step writes no index of executions, so that it can be a HOT update."""

import re

import psycopg
import pytest

from windlass import Windlass
from windlass.stores.queries import load

INDEXED = """
SELECT DISTINCT a.attname FROM pg_index i JOIN pg_depend d ON d.classid = 'pg_class'::regclass
    AND d.objid = i.indexrelid
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE i.indrelid = 'windlass_execution'::regclass AND d.refobjid = i.indrelid
"""
"""Columns that an index has, or the condition of one."""


@pytest.mark.parametrize("statement", ["advance_executions", "advance_stages"])
def test_boundary_writes_columns_that_no_index_has(pg_url: str, statement: str):
    """P2.3: one such column would make each step write every index of its execution."""
    app = Windlass(pg_url)
    app.migrate()
    app.close()
    with psycopg.connect(pg_url) as connection:
        indexed = {name for (name,) in connection.execute(INDEXED)}
        options = connection.execute("SELECT reloptions FROM pg_class WHERE relname = 'windlass_execution'").fetchone()
    assert {"tenant", "status", "updated_at"} <= indexed
    changes = load("postgres")[statement].sql.partition("\nFROM")[0]
    written = set(re.findall(r"(?:SET|,)\s+(\w+) = ", changes))
    assert {"row_version", "written_by", "cursor", "attempt", "value_version"} <= written
    assert not written & indexed
    assert options is not None
    assert "fillfactor=50" in options[0], "and there is room in the page for the new version"
