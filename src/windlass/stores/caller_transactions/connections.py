"""One interface for all kinds of connections: run a statement, and access the driver's own connection."""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext
from typing import Any, Final, Protocol

from windlass.domain.caller_connections import SUPPORTED, ConnectionKind
from windlass.errors import InvalidOptionError
from windlass.stores.caller_transactions.asyncpg_connections import AsyncpgState, numbered
from windlass.stores.caller_transactions.commands import Command, answer


class CallerConnection(Protocol):
    """A connection of the caller, of any supported library."""

    driver: Any
    """The driver's connection, which knows whether a transaction is open."""
    database: str
    """`sqlite` or `postgres`."""
    pyformat: bool
    """Whether parameters are written `%(name)s`; else `:name`."""

    def execute(self, command: Command) -> Any:
        """Run a statement and return its result, by its kind."""
        ...


def wrap_connection(connection: Any, kind: ConnectionKind) -> CallerConnection:
    """Wrap a sync connection, or the one that an async SQLAlchemy connection passes to `run_sync`."""
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
        """Run a statement on a plain cursor, whose rows are tuples."""
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
            pass  # waits for the caller's statements: only then is it known whether a transaction is open

    def _pipeline(self) -> Any:
        """Return a nested pipeline if the caller uses one: its end waits for the results."""
        return self.driver.pipeline() if self.driver.info.pipeline_status else nullcontext()

    def execute(self, command: Command) -> Any:
        """Run a statement on a plain cursor, whose rows are tuples; nothing is prepared in the caller's session."""
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
        """Wait for the statements that the caller has sent, as `CallerPsycopg` does."""
        async with self._pipeline():
            pass

    def _pipeline(self) -> Any:
        return self.driver.pipeline() if self.driver.info.pipeline_status else nullcontext()

    async def execute(self, command: Command) -> Any:
        """Do `CallerPsycopg.execute`, awaited."""
        import psycopg

        async with psycopg.AsyncCursor(self.driver, row_factory=psycopg.rows.tuple_row) as cursor:
            async with self._pipeline():
                await cursor.execute(command.text.encode(), command.params, prepare=False)
            rows = await cursor.fetchall() if cursor.description else ()
            return answer(command.kind, rows, cursor.rowcount)


class CallerSqlalchemy:
    """A SQLAlchemy `Connection`, or that of a `Session`.

    Statements run through SQLAlchemy, so that its errors, logs and events work as usual.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection.connection() if callable(connection.connection) else connection
        if not self._connection.in_transaction():
            self._connection.begin()  # as its first statement would do
        dialect = self._connection.dialect
        self.database = _database(dialect.name, dialect.driver, *_SQLALCHEMY_DRIVERS)
        self.pyformat = self.database == "postgres"
        self._numbers = dialect.driver == "asyncpg"
        proxied = self._connection.connection
        self.driver = proxied.driver_connection
        if self._numbers:  # begins at its first statement, unless in autocommit mode
            self.driver = AsyncpgState(self.driver, autocommit=proxied.dbapi_connection.autocommit)
        elif dialect.driver == "aiosqlite":
            self.driver = self.driver._conn

    def execute(self, command: Command) -> Any:
        """Run a statement in the driver's form: SQLAlchemy does not parse its text."""
        text, params = numbered(command) if self._numbers else (command.text, command.params)
        result = self._connection.exec_driver_sql(text, params or None, execution_options={"preserve_rowcount": True})
        rows = result.fetchall() if result.returns_rows else ()
        return answer(command.kind, rows, result.rowcount)


_SQLALCHEMY_DRIVERS: Final = ("psycopg", "psycopg_async", "asyncpg", "pysqlite", "aiosqlite")


class CallerDjango:
    """A Django connection; statements run on its cursors, so that its errors, wrappers and query log work."""

    pyformat = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        connection.ensure_connection()
        self.driver = connection.connection
        driver = type(self.driver).__module__.partition(".")[0]
        self.database = _database(connection.vendor, driver, "psycopg", "sqlite3")

    def execute(self, command: Command) -> Any:
        """Run a statement; Django expects parameters written `%(name)s` for every backend."""
        with self._connection.cursor() as cursor:
            cursor.execute(command.text, command.params)
            rows = cursor.fetchall() if cursor.description else ()
            return answer(command.kind, rows, cursor.rowcount)


def _database(vendor: str, driver: str, *known: str) -> str:
    """Return the database of a library's connection; raise if it or its driver is not supported."""
    databases = {"sqlite": "sqlite", "postgresql": "postgres"}
    if vendor not in databases or driver not in known:
        raise InvalidOptionError(
            f"connection leads to {vendor} through the driver {driver}; expected SQLite through sqlite3 or aiosqlite, "
            f"or PostgreSQL through psycopg (version 3) or asyncpg. Known are {SUPPORTED}"
        )
    return databases[vendor]
