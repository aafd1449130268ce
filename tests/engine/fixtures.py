"""Fixtures of the tests that drive whole applications; the conftest of each such folder imports them."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.engine import jobs
from tests.engine.apps import TABLES, Apps, Gate, Shop
from windlass import Windlass
from windlass.testing.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """One database for all tests of these folders: making one costs more than most of them."""
    url = postgres_server.create_database()
    apps = Apps(url)
    apps()
    apps.close()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def empty_postgres(migrated_postgres: str) -> str:
    """That database, without a row of the test before."""
    with psycopg.connect(migrated_postgres) as connection:
        tables = [sql.Identifier(f"windlass_{table}") for table in TABLES]
        connection.execute(sql.SQL(";").join(sql.SQL("DELETE FROM {}").format(table) for table in tables))
    return migrated_postgres


@pytest.fixture(params=["sqlite", "postgres"])
def apps(request: pytest.FixtureRequest) -> Iterator[Apps]:
    """A maker of applications on one empty store, of each kind in turn."""
    fixture = {"sqlite": "file_url", "postgres": "empty_postgres"}[request.param]
    made = Apps(request.getfixturevalue(fixture))
    yield made
    made.close()


@pytest.fixture
def app(apps: Apps) -> Windlass:
    """One application with default settings."""
    return apps()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate for `jobs.hold` and `jobs.ahold`; open at the end, so that no body outlives its test."""
    made = Gate()
    jobs.GATES[made.name] = made
    yield made
    made.open()
    del jobs.GATES[made.name]


@pytest.fixture(autouse=True)
def _nothing_seen() -> Iterator[None]:
    """What bodies note down is per test."""
    jobs.seen.clear()
    yield
    jobs.seen.clear()
    jobs.APPS.clear()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A module of the test's own making."""
    monkeypatch.syspath_prepend(tmp_path)
    made = Shop(tmp_path)
    yield made
    made.unload()
