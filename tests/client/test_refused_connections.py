"""Connections that cannot be used: each is refused with what to do instead, before anything is written."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from psycopg.conninfo import make_conninfo
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.ext import asyncio as aio

from tests.client.callers import NOTHING, Lending, django_atomic, path_of, psycopg_async, sqlalchemy_connection
from tests.engine import jobs
from tests.engine.apps import Apps, count
from windlass import InvalidOptionError, MigrationRequiredError, Windlass
from windlass.testing.postgres_server import PostgresServer


@pytest.fixture
def sqlite_app(sqlite_url: str):
    apps = Apps(sqlite_url)
    yield apps()
    apps.close()


@pytest.fixture
def postgres_app(empty_postgres: str):
    apps = Apps(empty_postgres)
    yield apps()
    apps.close()


class Connection:
    """Of no library that is known."""


class AnotherDriver(SQLiteDialect_pysqlite):
    """A driver that SQLAlchemy knows and we do not."""

    driver = "another"


@pytest.mark.parametrize("thing", ["postgresql://shop", 42, object(), Connection(), sqlite3, sqlite3.Row])
def test_an_unknown_object_is_refused_where_it_is_written(app: Windlass, thing: object):
    """api.md Options: the error says what is supported."""
    with pytest.raises(InvalidOptionError, match=r"connection must be a sqlite3\.Connection, .*Session.*django\.db"):
        app.job(jobs.note).using(connection=thing)


def test_no_connection_is_an_enqueue_like_any_other(app: Windlass, apps: Apps):
    """api.md Options: `connection=None` takes back what was given before."""
    with closing(sqlite3.connect(":memory:")) as connection:
        note = app.job(jobs.note).using(connection=connection)
        note.using(connection=None).enqueue("stored")
    assert count(apps.url, "job") == 1


def test_calls_with_different_connections_are_not_stored_together(lending: Lending):
    """api.md Submitting: `enqueue_many` is one transaction."""
    app = lending.apps()
    note = app.job(jobs.note)
    with lending.transaction() as caller, closing(sqlite3.connect(":memory:")) as other:
        mine = note.using(connection=caller.connection)
        for stranger in (note.bind("none"), note.using(connection=other).bind("another")):
            for calls in ([mine.bind("mine"), stranger], [stranger, mine.bind("mine")]):
                with pytest.raises(InvalidOptionError, match="must all carry the same connection, or none"):
                    app.enqueue_many(calls)
    assert lending.counts() == NOTHING


def test_an_async_connection_names_the_async_twin(lending: Lending):
    """api.md: `enqueue` cannot await; nothing is stored."""
    app = lending.apps()
    engine = aio.create_async_engine("sqlite+aiosqlite://")
    for connection in (aio.AsyncSession(engine), engine.connect()):
        with pytest.raises(InvalidOptionError, match=r"is async .*enqueue.* cannot await; write `await .*aenqueue"):
            app.job(jobs.note).using(connection=connection).enqueue("never")
        with pytest.raises(InvalidOptionError, match="aenqueue_many"):
            app.enqueue_many([app.job(jobs.note).using(connection=connection).bind("never")])
    assert lending.counts() == NOTHING


async def test_an_async_psycopg_connection_names_the_async_twin(postgres_app: Windlass):
    """api.md: the same for psycopg's own."""
    async with psycopg_async(postgres_app.url) as caller:
        with pytest.raises(InvalidOptionError, match="aenqueue"):
            postgres_app.job(jobs.note).using(connection=caller.connection).enqueue("never")


async def test_a_sync_connection_names_the_sync_twin(sqlite_app: Windlass):
    """api.md: `aenqueue` would block the loop with it; `enqueue` says openly that it does."""
    note = sqlite_app.job(jobs.note)
    with closing(sqlite3.connect(path_of(sqlite_app.url))) as connection:
        with pytest.raises(InvalidOptionError, match=r"would block the event loop with it; write `.*enqueue"):
            await note.using(connection=connection).aenqueue("never")
        with pytest.raises(InvalidOptionError, match=r"app\.enqueue_many"):
            await sqlite_app.aenqueue_many([note.using(connection=connection).bind("never")])
        assert connection.in_transaction is False
        note.using(connection=connection).enqueue("stored")
        connection.commit()
    assert count(sqlite_app.url, "job") == 1


@pytest.mark.parametrize("kind", [sqlalchemy_connection, django_atomic])
def test_a_connection_to_another_kind_of_database_is_refused(postgres_app: Windlass, sqlite_app: Windlass, kind):
    """api.md Submitting: SQLite given to an application on PostgreSQL, and the other way round."""
    for app, other in ((postgres_app, sqlite_app), (sqlite_app, postgres_app)):
        refused = pytest.raises(InvalidOptionError, match="another database than the application's: expected")
        with kind(other.url) as caller, refused:
            app.job(jobs.note).using(connection=caller.connection).enqueue("never")
        assert count(other.url, "job") == 0


def test_drivers_own_connections_to_another_kind_of_database_are_refused(postgres_app: Windlass, sqlite_app: Windlass):
    """api.md Submitting: `sqlite3` and `psycopg` alike, sync and async."""
    refused = pytest.raises(InvalidOptionError, match=r"expected PostgreSQL .* got SQLite")
    with closing(sqlite3.connect(path_of(sqlite_app.url))) as connection, refused:
        postgres_app.job(jobs.note).using(connection=connection).enqueue("never")
    refused = pytest.raises(InvalidOptionError, match=r"expected SQLite .* got PostgreSQL")
    with psycopg.connect(postgres_app.url) as server, refused:
        sqlite_app.job(jobs.note).using(connection=server).enqueue("never")


async def test_an_async_connection_to_another_kind_of_database_is_refused(empty_postgres: str, sqlite_app: Windlass):
    """api.md Submitting: the same."""
    async with psycopg_async(empty_postgres) as caller:
        with pytest.raises(InvalidOptionError, match=r"expected SQLite .* got PostgreSQL"):
            await sqlite_app.job(jobs.note).using(connection=caller.connection).aenqueue("never")


def test_another_sqlite_file_is_refused(sqlite_app: Windlass, tmp_path: Path):
    """api.md Submitting: even one that has the same tables; nothing is written to it, no setting of it is touched."""
    note = sqlite_app.job(jobs.note)
    others = Apps(f"sqlite:///{tmp_path / 'other.db'}")
    others()
    others.close()
    for other in (path_of(others.url), ":memory:", ""):
        with closing(sqlite3.connect(other)) as connection:
            with pytest.raises(InvalidOptionError, match=r"expected the SQLite file .*windlass\.db, got"):
                note.using(connection=connection).enqueue("never")
            assert connection.in_transaction is False
            assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (1000,)
    assert count(others.url, "job") == 0


def test_the_same_sqlite_file_by_another_path_is_not_refused(sqlite_app: Windlass, tmp_path: Path):
    """api.md Submitting: links, URIs and detours lead to it too."""
    file = Path(path_of(sqlite_app.url))
    link = tmp_path / "link.db"
    link.symlink_to(file)
    (tmp_path / "folder").mkdir()
    for path in (f"{tmp_path}/folder/../{file.name}", f"file:{file}?mode=rw", str(link)):
        with closing(sqlite3.connect(path, uri=path.startswith("file:"))) as connection, connection:
            sqlite_app.job(jobs.note).using(connection=connection).enqueue("stored")
    assert count(sqlite_app.url, "job") == 3


def test_a_database_in_memory_cannot_be_shared():
    """api.md Submitting: no other connection reaches it."""
    app = Windlass("sqlite://")
    refused = pytest.raises(InvalidOptionError, match="is in memory, where no other connection reaches it")
    with closing(sqlite3.connect(":memory:")) as connection, refused:
        app.job(jobs.note).using(connection=connection).enqueue("never")
    app.close()


def test_another_postgresql_database_is_refused(postgres_app: Windlass, postgres_server: PostgresServer):
    """api.md Submitting: with our tables in it or without; the transaction there stays usable."""
    note = postgres_app.job(jobs.note)
    other = postgres_server.create_database()
    with psycopg.connect(other) as connection:
        connection.execute("CREATE TABLE mine (id int)")
        with pytest.raises(MigrationRequiredError, match="tables of Windlass are not found through the connection"):
            note.using(connection=connection).enqueue("never")
        connection.execute("INSERT INTO mine VALUES (1)")
    with sqlalchemy_connection(other) as caller, pytest.raises(MigrationRequiredError):
        note.using(connection=caller.connection).enqueue("never")
    with django_atomic(other) as caller, pytest.raises(MigrationRequiredError):
        note.using(connection=caller.connection).enqueue("never")
    apps = Apps(other)
    apps()
    apps.close()
    with psycopg.connect(other) as connection:
        with pytest.raises(InvalidOptionError, match="another database than the application's"):
            note.using(connection=connection).enqueue("never")
        assert connection.execute("SELECT count(*) FROM mine").fetchone() == (1,)
    assert count(other, "job") == 0
    postgres_server.drop_database(other)


def test_a_search_path_that_hides_our_tables_is_reported(postgres_app: Windlass):
    """api.md Errors: the error names it, and the transaction stays usable."""
    with psycopg.connect(make_conninfo(postgres_app.url, options="-c search_path=pg_temp")) as connection:
        with pytest.raises(MigrationRequiredError, match="search_path"):
            postgres_app.job(jobs.note).using(connection=connection).enqueue("never")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_drivers_that_are_not_known_are_refused(sqlite_app: Windlass):
    """api.md Submitting: its parameters might be misread; the error names it."""
    sqlalchemy.dialects.registry.register("sqlite.another", __name__, "AnotherDriver")
    engine = sqlalchemy.create_engine(sqlite_app.url.replace("sqlite:", "sqlite+another:"))
    with engine.begin() as connection, pytest.raises(InvalidOptionError, match="the driver another; expected SQLite"):
        sqlite_app.job(jobs.note).using(connection=connection).enqueue("never")
    engine.dispose()
    assert count(sqlite_app.url, "job") == 0


def test_replace_takes_no_connection(sqlite_app: Windlass):
    """J2.4: `replace` is one transaction of ours."""
    note = sqlite_app.job(jobs.note)
    old = note.enqueue("old")
    refused = pytest.raises(InvalidOptionError, match=r"got it in replace\(\)")
    with closing(sqlite3.connect(path_of(sqlite_app.url))) as connection, refused:
        sqlite_app.replace(old.id, note.using(connection=connection).bind("new"))
    assert count(sqlite_app.url, "job") == 1
