"""Rules for callers' connections to SQLite."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Generator, Mapping
from typing import Any, ClassVar

from windlass.errors import InvalidOptionError, MigrationRequiredError
from windlass.stores import migrate
from windlass.stores.caller_transactions.commands import Command
from windlass.stores.caller_transactions.rules import TransactionStart, wrong_database
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.queries import Query, load, to_pyformat
from windlass.stores.sqlite.dialect import SqliteDatabase, SqliteDialect

_NO_TABLES = re.compile(r"no such table: (main\.)?windlass_|table windlass_\w+ has no column|no such column")


class SqliteRules:
    """SQLite: the time is a parameter, because callers' connections lack our SQL function for it."""

    writes_first: ClassVar[bool] = True

    def __init__(self, database: SqliteDatabase) -> None:
        self.dialect: Dialect = SqliteDialect()
        self.installation: tuple[Any, ...] | None = (database.path,)
        self._path = database.path
        self._location = database.location
        self._now = database.now
        self._queries = load("sqlite")

    def transaction_start(self, driver: sqlite3.Connection) -> TransactionStart:
        """Begin explicitly: the driver begins only before plain writes, and releasing a savepoint would commit."""
        if driver.in_transaction:
            return TransactionStart()
        mode = getattr(driver, "autocommit", None)  # Python 3.12: True, False, or "as by isolation_level"
        return TransactionStart("BEGIN IMMEDIATE", commits=mode is True or driver.isolation_level is None)

    def in_transaction(self, driver: sqlite3.Connection) -> bool:
        """Return whether a transaction is open: SQLite itself rolls back when, for example, the disk is full."""
        return driver.in_transaction

    def preparation(self) -> Generator[Command, Any, None]:
        """Turn off automatic checkpoints.

        Windlass makes them under a lock, because SQLite before 3.51.3 may damage the file otherwise.
        """
        yield Command("PRAGMA wal_autocheckpoint = 0")

    def query(self, step: Step) -> Query:
        """Return the statement a step names."""
        return self._queries[step.name]

    def text(self, query: Query, literals: Mapping[str, int] | None, *, pyformat: bool) -> str:
        """Return the text with the time as a parameter."""
        text = query.sql.replace("{now}", ":now")
        for name, value in (literals or {}).items():
            text = text.replace(f"{{{name}}}", str(int(value)))
        return to_pyformat(text) if pyformat else text

    def parameters(self) -> Mapping[str, Any]:
        """Return the time of the statement."""
        return {"now": self._now()}

    def check_database(self, driver: sqlite3.Connection) -> Plan[None]:
        """Raise unless both lead to the same file, by any path."""
        del driver
        if self._path == ":memory:":
            raise InvalidOptionError(
                "connection cannot be used: this application's database is in memory, where no other connection "
                "reaches it; give both the same file, e.g. Windlass('sqlite:///shop.db')"
            )
        self._location.check()
        _, _, file = yield from migrate.installation(self.dialect)
        if not (file and _same_file(file, self._path)):
            raise wrong_database(f"the SQLite file {self._path}", file or "a database in memory")

    def translate(self, error: BaseException) -> Exception | None:
        """Return `MigrationRequiredError` if our tables are missing, or are those of an older version."""
        if _NO_TABLES.search(str(error)):
            return MigrationRequiredError(f"{self._path}: {error}; call app.migrate() before the transaction begins")
        return None


def _same_file(one: str, other: str) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)  # SQLite creates a file at its first write
