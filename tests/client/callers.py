"""Callers with a connection of their own, one for every kind that can be given to `connection=`.

Each opens a transaction, writes a row of its own beside the job, and commits or rolls back as its library does it.
"""

import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from typing import Any, NamedTuple
from uuid import uuid4

import django
import psycopg
import pytest
import sqlalchemy
from django.conf import settings
from django.db import connections, transaction
from django.db.utils import ConnectionHandler
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as aio
from sqlalchemy.pool import NullPool

from tests.engine.apps import Apps, count, query

settings.configure(DATABASES={}, USE_TZ=True)
django.setup()


class Caller(NamedTuple):
    """One transaction of one kind of connection."""

    connection: Any
    """What is given to `connection=`."""
    execute: Callable[[str], Any]
    """Runs a statement of the caller's own; to be awaited if the connection is async."""


class RolledBack(Exception):  # noqa: N818 - a test's own word for why its transaction ends
    """Raised to leave a transaction without a commit."""


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


def sqlalchemy_url(url: str, sqlite: str, postgres: str) -> str:
    return url.replace("sqlite://", f"{sqlite}://", 1).replace("postgresql://", f"{postgres}://", 1)


# ---------------------------------------------------------------------- sync


@contextmanager
def sqlite3_default(url: str) -> Iterator[Caller]:
    with closing(sqlite3.connect(path_of(url))) as connection, connection:
        yield Caller(connection, connection.execute)


@contextmanager
def sqlite3_rows_as_mappings(url: str) -> Iterator[Caller]:
    with closing(sqlite3.connect(path_of(url))) as connection, connection:
        connection.row_factory = lambda cursor, row: dict(zip(cursor.description, row, strict=True))
        connection.text_factory = bytes
        yield Caller(connection, connection.execute)


@contextmanager
def sqlite3_explicit(url: str) -> Iterator[Caller]:
    with closing(sqlite3.connect(path_of(url), isolation_level=None)) as connection:
        connection.execute("BEGIN")
        with connection:
            yield Caller(connection, connection.execute)


@contextmanager
def sqlite3_never_autocommit(url: str) -> Iterator[Caller]:
    """Python 3.12: a transaction is always open."""
    with closing(sqlite3.connect(path_of(url), autocommit=False)) as connection, connection:  # type: ignore[call-overload]
        yield Caller(connection, connection.execute)


@contextmanager
def psycopg_default(url: str) -> Iterator[Caller]:
    with psycopg.connect(url) as connection:
        yield Caller(connection, connection.execute)


@contextmanager
def psycopg_rows_as_mappings(url: str) -> Iterator[Caller]:
    with psycopg.connect(url, row_factory=dict_row, cursor_factory=psycopg.RawCursor) as connection:
        yield Caller(connection, connection.execute)


@contextmanager
def psycopg_block(url: str) -> Iterator[Caller]:
    """A transaction inside a transaction, on a connection that commits by itself otherwise."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction(), connection.transaction():
        yield Caller(connection, connection.execute)


@contextmanager
def psycopg_pipeline(url: str) -> Iterator[Caller]:
    """Statements are sent without waiting for answers, also the one that begins the transaction."""
    with psycopg.connect(url, autocommit=True) as connection, connection.pipeline():
        connection.execute("BEGIN")
        try:
            yield Caller(connection, connection.execute)
        except RolledBack:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


@contextmanager
def engine_of(url: str, **options: Any) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(
        sqlalchemy_url(url, "sqlite", "postgresql+psycopg"), poolclass=NullPool, **options
    )
    yield engine
    engine.dispose()


@contextmanager
def sqlalchemy_connection(url: str) -> Iterator[Caller]:
    with engine_of(url) as engine, engine.begin() as connection:
        yield Caller(connection, lambda text: connection.execute(sqlalchemy.text(text)))


@contextmanager
def sqlalchemy_nested(url: str) -> Iterator[Caller]:
    with engine_of(url) as engine, engine.begin() as connection, connection.begin_nested():
        yield Caller(connection, lambda text: connection.execute(sqlalchemy.text(text)))


@contextmanager
def sqlalchemy_session(url: str) -> Iterator[Caller]:
    with engine_of(url) as engine, orm.Session(engine) as session, session.begin():
        yield Caller(session, lambda text: session.execute(sqlalchemy.text(text)))


@contextmanager
def sqlalchemy_scoped_session(url: str) -> Iterator[Caller]:
    with engine_of(url) as engine:
        session = orm.scoped_session(orm.sessionmaker(engine))
        with session.begin():
            yield Caller(session, lambda text: session.execute(sqlalchemy.text(text)))
        session.remove()


@contextmanager
def django_wrapper(url: str) -> Iterator[Any]:
    """A connection of Django's to this database, under an alias of its own."""
    alias = uuid4().hex
    if url.startswith("sqlite"):
        entry: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": path_of(url)}
    else:
        parts = conninfo_to_dict(url)
        names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
        entry = {key: parts[part] for key, part in names.items() if part in parts}
        entry["ENGINE"] = "django.db.backends.postgresql"
    connections.settings[alias] = ConnectionHandler({"default": {}, alias: entry}).settings[alias]
    try:
        yield connections[alias]
    finally:
        connections[alias].close()
        del connections[alias], connections.settings[alias]


@contextmanager
def django_atomic(url: str) -> Iterator[Caller]:
    with django_wrapper(url) as wrapper, transaction.atomic(using=wrapper.alias), wrapper.cursor() as cursor:
        yield Caller(wrapper, cursor.execute)


@contextmanager
def django_nested_atomic_with_query_log(url: str) -> Iterator[Caller]:
    with django_wrapper(url) as wrapper, transaction.atomic(using=wrapper.alias):
        wrapper.force_debug_cursor = True
        with transaction.atomic(using=wrapper.alias), wrapper.cursor() as cursor:
            yield Caller(wrapper, cursor.execute)


# ---------------------------------------------------------------------- async


@asynccontextmanager
async def psycopg_async(url: str) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield Caller(connection, connection.execute)


@asynccontextmanager
async def psycopg_async_rows_as_mappings(url: str) -> AsyncIterator[Caller]:
    connecting = psycopg.AsyncConnection.connect(url, row_factory=dict_row, autocommit=True)
    async with await connecting as connection, connection.transaction():
        yield Caller(connection, connection.execute)


@asynccontextmanager
async def psycopg_async_pipeline(url: str) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection, connection.pipeline():
        await connection.execute("BEGIN")
        try:
            yield Caller(connection, connection.execute)
        except RolledBack:
            await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")


@asynccontextmanager
async def asyncpg_transaction(url: str) -> AsyncIterator[Caller]:
    asyncpg = pytest.importorskip("asyncpg")
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield Caller(connection, connection.execute)
    finally:
        await connection.close()


@asynccontextmanager
async def asyncpg_pool(url: str) -> AsyncIterator[Caller]:
    """A connection of a pool, in a transaction inside a transaction, without statements that stay prepared."""
    asyncpg = pytest.importorskip("asyncpg")
    pooled = asyncpg.create_pool(url, min_size=1, max_size=1, statement_cache_size=0)
    async with pooled as pool, pool.acquire() as connection, connection.transaction(), connection.transaction():
        yield Caller(connection, connection.execute)


@asynccontextmanager
async def async_engine_of(url: str, driver: str = "psycopg", **options: Any) -> AsyncIterator[aio.AsyncEngine]:
    pytest.importorskip(driver)
    target = sqlalchemy_url(url, "sqlite+aiosqlite", f"postgresql+{driver}")
    engine = aio.create_async_engine(target, poolclass=NullPool, **options)
    yield engine
    await engine.dispose()


@asynccontextmanager
async def sqlalchemy_async_connection(url: str) -> AsyncIterator[Caller]:
    async with async_engine_of(url) as engine, engine.begin() as connection:
        yield Caller(connection, lambda text: connection.execute(sqlalchemy.text(text)))


@asynccontextmanager
async def sqlalchemy_async_session(url: str) -> AsyncIterator[Caller]:
    async with async_engine_of(url) as engine, aio.AsyncSession(engine) as session, session.begin():
        yield Caller(session, lambda text: session.execute(sqlalchemy.text(text)))


@asynccontextmanager
async def sqlalchemy_asyncpg_connection(url: str) -> AsyncIterator[Caller]:
    async with async_engine_of(url, "asyncpg") as engine, engine.begin() as connection:
        yield Caller(connection, lambda text: connection.execute(sqlalchemy.text(text)))


@asynccontextmanager
async def sqlalchemy_asyncpg_session(url: str) -> AsyncIterator[Caller]:
    async with async_engine_of(url, "asyncpg") as engine, aio.AsyncSession(engine) as session, session.begin():
        yield Caller(session, lambda text: session.execute(sqlalchemy.text(text)))


# ---------------------------------------------------------------------- all of them

LEGACY = [sqlite3_never_autocommit] if sys.version_info >= (3, 12) else []
SYNC = [
    *(("sqlite", kind) for kind in (sqlite3_default, sqlite3_rows_as_mappings, sqlite3_explicit, *LEGACY)),
    *(("postgres", kind) for kind in (psycopg_default, psycopg_rows_as_mappings, psycopg_block, psycopg_pipeline)),
    *(
        (store, kind)
        for store in ("sqlite", "postgres")
        for kind in (
            *(sqlalchemy_connection, sqlalchemy_nested, sqlalchemy_session, sqlalchemy_scoped_session),
            *(django_atomic, django_nested_atomic_with_query_log),
        )
    ),
]
ASYNC = [
    *(("postgres", kind) for kind in (psycopg_async, psycopg_async_rows_as_mappings, psycopg_async_pipeline)),
    *(("postgres", kind) for kind in (asyncpg_transaction, asyncpg_pool)),
    *(("postgres", kind) for kind in (sqlalchemy_asyncpg_connection, sqlalchemy_asyncpg_session)),
    *(
        (store, kind)
        for store in ("sqlite", "postgres")
        for kind in (sqlalchemy_async_connection, sqlalchemy_async_session)
    ),
]


class Lending(NamedTuple):
    """A store, and one kind of connection to it that callers have."""

    apps: Apps
    transaction: Callable[[], Any]
    """A context manager that gives a `Caller`, and commits at its end unless something is raised."""

    @contextmanager
    def rolled_back(self) -> Iterator[Caller]:
        """`transaction`, but at its end it is rolled back."""
        with suppress(RolledBack), self.transaction() as caller:
            yield caller
            raise RolledBack

    @asynccontextmanager
    async def arolled_back(self) -> AsyncIterator[Caller]:
        """The same of an async connection."""
        with suppress(RolledBack):
            async with self.transaction() as caller:
                yield caller
                raise RolledBack

    @property
    def url(self) -> str:
        return self.apps.url

    def orders(self) -> int:
        """How many rows the callers wrote for themselves."""
        return int(query(self.url, "SELECT count(*) FROM orders")[0][0])

    def counts(self) -> dict[str, int]:
        """How much is stored of what an enqueue writes."""
        return {table: count(self.url, table) for table in ("job", "hot", "key", "live_key", "job_tag", "queue")}


NOTHING = dict.fromkeys(("job", "hot", "key", "live_key", "job_tag", "queue"), 0)
ONE = dict.fromkeys(("job", "hot", "key", "live_key", "job_tag", "queue"), 1)


def make_orders(url: str) -> None:
    """A table of the caller's own, empty."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(path_of(url))) as connection:
            connection.execute("CREATE TABLE orders (id int)")
    else:
        with psycopg.connect(url) as server:
            server.execute("CREATE TABLE IF NOT EXISTS orders (id int)")
            server.execute("DELETE FROM orders")
