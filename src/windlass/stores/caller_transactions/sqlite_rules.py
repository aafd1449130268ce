"""Rules of SQLite for connections of callers."""

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
    """SQLite: the time is a parameter, because our function for it is not known to other connections."""

    writes_first: ClassVar[bool] = True

    def __init__(self, database: SqliteDatabase) -> None:
        self.dialect: Dialect = SqliteDialect()
        self.installation: tuple[Any, ...] | None = (database.path,)
        self._path = database.path
        self._place = database.place
        self._now = database.now
        self._queries = load("sqlite")

    def transaction_start(self, driver: sqlite3.Connection) -> TransactionStart:
        """A driver that begins by itself does so for plain writes only, and a savepoint outside would commit."""
        if driver.in_transaction:
            return TransactionStart()
        mode = getattr(driver, "autocommit", None)  # Python 3.12: True, False, or "as by isolation_level"
        return TransactionStart("BEGIN IMMEDIATE", commits=mode is True or driver.isolation_level is None)

    def in_transaction(self, driver: sqlite3.Connection) -> bool:
        """SQLite itself undoes everything when, for one, the disk is full."""
        return driver.in_transaction

    def preparation(self) -> Generator[Command, Any, None]:
        """Checkpoints are for us to make, under a lock: SQLite before 3.51.3 may damage a file otherwise."""
        yield Command("PRAGMA wal_autocheckpoint = 0")

    def query(self, step: Step) -> Query:
        """The statement a step names."""
        return self._queries[step.name]

    def text(self, query: Query, literals: Mapping[str, int] | None, *, pyformat: bool) -> str:
        """With the time as a parameter."""
        text = query.sql.replace("{now}", ":now")
        for name, value in (literals or {}).items():
            text = text.replace(f"{{{name}}}", str(int(value)))
        return to_pyformat(text) if pyformat else text

    def parameters(self) -> Mapping[str, Any]:
        """The time of this statement."""
        return {"now": self._now()}

    def check_database(self, driver: sqlite3.Connection) -> Plan[None]:
        """The same file, by whatever path."""
        del driver
        if self._path == ":memory:":
            raise InvalidOptionError(
                "connection cannot be used: this application's database is in memory, where no other connection "
                "reaches it; give both the same file, e.g. Windlass('sqlite:///shop.db')"
            )
        self._place.check()
        _, _, file = yield from migrate.installation(self.dialect)
        if not (file and _same_file(file, self._path)):
            raise wrong_database(f"the SQLite file {self._path}", file or "a database in memory")

    def translate(self, error: BaseException) -> Exception | None:
        """Our tables are not there yet, or are those of an older version."""
        if _NO_TABLES.search(str(error)):
            return MigrationRequiredError(f"{self._path}: {error}; call app.migrate() before the transaction begins")
        return None


def _same_file(one: str, other: str) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)  # SQLite makes a file when it is first written
