"""Stores to run the contract on: SQLite in a file and in memory, and PostgreSQL, with a clock that tests move."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.stores.databases import empty_tables, migrate_at
from windlass.domain.clock import VirtualClock
from windlass.stores.database import Database
from windlass.stores.migrate import migrate
from windlass.stores.open import open_database
from windlass.testing.postgres_server import PostgresServer


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """A PostgreSQL database with tables; emptied before each use, which is quicker than a new one."""
    url = postgres_server.create_database()
    migrate_at(url)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def broom(migrated_postgres: str) -> Iterator[psycopg.Connection]:
    """A connection kept for emptying that database."""
    with psycopg.connect(migrated_postgres, autocommit=True) as connection:
        yield connection


@pytest.fixture
def clean_pg_url(migrated_postgres: str, broom: psycopg.Connection) -> str:
    """The migrated PostgreSQL database, emptied."""
    empty_tables(broom)
    return migrated_postgres


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def store(request: pytest.FixtureRequest, clock: VirtualClock) -> Iterator[Database]:
    """A store of each kind in turn, with tables and no rows."""
    database = open_database(_url(request, {"sqlite": "file_url", "postgres": "clean_pg_url"}), clock)
    if request.param == "memory":
        migrate(database)
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def empty_store(request: pytest.FixtureRequest, clock: VirtualClock) -> Iterator[Database]:
    """A store of each kind in turn, without tables."""
    database = open_database(_url(request, {"sqlite": "sqlite_url", "postgres": "pg_url"}), clock)
    yield database
    database.close()


def _url(request: pytest.FixtureRequest, fixtures: dict[str, str]) -> str:
    return "sqlite://" if request.param == "memory" else str(request.getfixturevalue(fixtures[request.param]))
