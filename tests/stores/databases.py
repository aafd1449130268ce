"""Making tables, and emptying them again."""

import psycopg

from windlass.domain.clock import SystemClock
from windlass.stores.migrate import migrate
from windlass.stores.open import open_database


def migrate_at(url: str) -> None:
    """Make the tables behind a URL."""
    database = open_database(url, SystemClock())
    migrate(database)
    database.close()


def empty_tables(connection: psycopg.Connection) -> None:
    """Delete every row of ours on a PostgreSQL database, and nothing of the list of migrations."""
    names = connection.execute(
        "SELECT tablename FROM pg_tables WHERE tablename LIKE 'windlass_%' AND tablename <> 'windlass_migration'"
    ).fetchall()
    connection.execute(";".join(f"DELETE FROM {name}" for (name,) in names))
