"""One interface to every kind of connection: run a statement, and look at the driver's connection below."""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext
from typing import Any, Final, Protocol

from windlass.domain.caller_connections import SUPPORTED, ConnectionKind
from windlass.errors import InvalidOptionError
from windlass.stores.caller_transactions.asyncpg_connections import AsyncpgState, numbered
from windlass.stores.caller_transactions.commands import Command, answer


class CallerConnection(Protocol):
    """A connection of the caller's, whatever its library."""

    driver: Any
    """The driver's connection: what knows whether a transaction is open."""
    database: str
    """`sqlite` or `postgres`."""
    pyformat: bool
    """Whether parameters are written `%(name)s`; else `:name`."""

    def execute(self, command: Command) -> Any:
        """Run a statement and answer by its kind."""
        ...


def wrap_connection(connection: Any, kind: ConnectionKind) -> CallerConnection:
    """Wrap a sync connection, or of what an async SQLAlchemy connection gives inside `run_sync`."""
    if kind is ConnectionKind.SQLITE3:
        return CallerSqlite(connection)
    if kind is ConnectionKind.PSYCOPG:
        return CallerPsycopg(connection)
    if kind is ConnectionKind.DJANGO:
        return CallerDjango(connection)
    return CallerSqlalchemy(connection)


class CallerSqlite:
    """A `sqlite3.Connection`."""

    database = "sqlite"
    pyformat = False

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.driver = connection

    def execute(self, command: Command) -> Any:
        """On a cursor of the plain class, whose rows are tuples."""
        cursor = sqlite3.Cursor(self.driver)
        cursor.row_factory = None
        cursor.execute(command.text, command.params or {})
        rows = cursor.fetchall() if cursor.description else ()
        return answer(command.kind, rows, cursor.rowcount)


class CallerPsycopg:
    """A `psycopg.Connection`."""

    database = "postgres"
    pyformat = True

    def __init__(self, connection: Any) -> None:
        self.driver = connection
        with self._pipeline():
            pass  # what the caller sent is then answered: only now is it known whether a transaction is open

    def _pipeline(self) -> Any:
        """Inside a pipeline of the caller's one more, at the end of which the answers are there."""
        return self.driver.pipeline() if self.driver.info.pipeline_status else nullcontext()

    def execute(self, command: Command) -> Any:
        """On a cursor of the plain class, whose rows are tuples; nothing is left prepared in the caller's session."""
        import psycopg

        with psycopg.Cursor(self.driver, row_factory=psycopg.rows.tuple_row) as cursor:
            with self._pipeline():
                cursor.execute(command.text.encode(), command.params, prepare=False)
            rows = cursor.fetchall() if cursor.description else ()
            return answer(command.kind, rows, cursor.rowcount)


class CallerPsycopgAsync:
    """A `psycopg.AsyncConnection`."""

    database = "postgres"
    pyformat = True

    def __init__(self, connection: Any) -> None:
        self.driver = connection

    async def catch_up(self) -> None:
        """Have what the caller sent answered, as in `CallerPsycopg`."""
        async with self._pipeline():
            pass

    def _pipeline(self) -> Any:
        return self.driver.pipeline() if self.driver.info.pipeline_status else nullcontext()

    async def execute(self, command: Command) -> Any:
        """`CallerPsycopg.execute`, awaited."""
        import psycopg

        async with psycopg.AsyncCursor(self.driver, row_factory=psycopg.rows.tuple_row) as cursor:
            async with self._pipeline():
                await cursor.execute(command.text.encode(), command.params, prepare=False)
            rows = await cursor.fetchall() if cursor.description else ()
            return answer(command.kind, rows, cursor.rowcount)


class CallerSqlalchemy:
    """A SQLAlchemy `Connection`, or the one a `Session` has; by SQLAlchemy itself, so that its errors and logs hold."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection.connection() if callable(connection.connection) else connection
        if not self._connection.in_transaction():
            self._connection.begin()  # as its own first statement would
        dialect = self._connection.dialect
        self.database = _database(dialect.name, dialect.driver, *_SQLALCHEMY_DRIVERS)
        self.pyformat = self.database == "postgres"
        self._numbers = dialect.driver == "asyncpg"
        proxied = self._connection.connection
        self.driver = proxied.driver_connection
        if self._numbers:  # it begins by itself, at its first statement, unless it was told to commit each
            self.driver = AsyncpgState(self.driver, autocommit=proxied.dbapi_connection.autocommit)
        elif dialect.driver == "aiosqlite":
            self.driver = self.driver._conn

    def execute(self, command: Command) -> Any:
        """As the driver takes it: the text is not SQLAlchemy's to read."""
        text, params = numbered(command) if self._numbers else (command.text, command.params)
        result = self._connection.exec_driver_sql(text, params or None, execution_options={"preserve_rowcount": True})
        rows = result.fetchall() if result.returns_rows else ()
        return answer(command.kind, rows, result.rowcount)


_SQLALCHEMY_DRIVERS: Final = ("psycopg", "psycopg_async", "asyncpg", "pysqlite", "aiosqlite")


class CallerDjango:
    """A Django connection; by its own cursors, so that its errors, wrappers and query log hold."""

    pyformat = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        connection.ensure_connection()
        self.driver = connection.connection
        driver = type(self.driver).__module__.partition(".")[0]
        self.database = _database(connection.vendor, driver, "psycopg", "sqlite3")

    def execute(self, command: Command) -> Any:
        """Whatever the backend, Django takes parameters written `%(name)s`."""
        with self._connection.cursor() as cursor:
            cursor.execute(command.text, command.params)
            rows = cursor.fetchall() if cursor.description else ()
            return answer(command.kind, rows, cursor.rowcount)


def _database(vendor: str, driver: str, *known: str) -> str:
    """The database behind a library's connection, if it is one of those we know through a driver we know."""
    databases = {"sqlite": "sqlite", "postgresql": "postgres"}
    if vendor not in databases or driver not in known:
        raise InvalidOptionError(
            f"connection leads to {vendor} through the driver {driver}; expected SQLite through sqlite3 or aiosqlite, "
            f"or PostgreSQL through psycopg (version 3) or asyncpg. Known are {SUPPORTED}"
        )
    return databases[vendor]
