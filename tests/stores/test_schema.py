"""The schema is one, in each database's own types."""

import sqlite3
from pathlib import Path

import psycopg

from windlass.stores import migrate

DIALECTS = ("sqlite", "postgres")
Columns = dict[tuple[str, str], bool]
"""(table, column) → may be NULL."""


def of_sqlite(path: Path) -> tuple[Columns, set[str]]:
    with sqlite3.connect(path) as connection:
        columns = connection.execute(
            'SELECT t.name, c.name, c."notnull" = 0 AND c.pk = 0 FROM sqlite_master t, pragma_table_info(t.name) c '
            "WHERE t.type = 'table'"
        ).fetchall()
        indexes = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        ).fetchall()
    connection.close()
    return {(table, column): bool(null) for table, column, null in columns}, {name for (name,) in indexes}


def of_postgres(url: str) -> tuple[Columns, set[str]]:
    with psycopg.connect(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, is_nullable = 'YES' FROM information_schema.columns "
            "WHERE table_schema = 'public'"
        ).fetchall()
        indexes = connection.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey'"
        ).fetchall()
    return {(table, column): null for table, column, null in columns}, {name for (name,) in indexes}


def test_every_dialect_has_the_same_migrations():
    """Operations: same numbers and names, so that every page and error can speak of `0001_initial`."""
    names = [[migration.name for migration in migrate.migrations(dialect)] for dialect in DIALECTS]
    assert names[0] == names[1]
    assert [int(name[:4]) for name in names[0]] == list(range(1, len(names[0]) + 1))


def test_every_dialect_has_the_same_tables_columns_and_indexes(migrated_file: Path, migrated_postgres: str):
    """Operations: statements are shared, so names, and what may be missing, are too."""
    columns, indexes = of_sqlite(migrated_file)
    assert (columns, indexes) == of_postgres(migrated_postgres)
    assert ("windlass_hot", "fence") in columns


def test_every_table_and_index_is_recognisably_ours(migrated_postgres: str):
    """Operations: the schema may live in an application's own database."""
    columns, indexes = of_postgres(migrated_postgres)
    assert {name for name in {table for table, _ in columns} | indexes if not name.startswith("windlass_")} == set()


def test_the_checksum_is_of_the_text():
    """Operations: an edited file that was applied is reported."""
    first = migrate.migrations("sqlite")[0]
    assert first.checksum == first._replace(version=2, name="x").checksum
    assert first.checksum != first._replace(script=first.script + " ").checksum
