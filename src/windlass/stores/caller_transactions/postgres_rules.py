"""Rules for callers' connections to PostgreSQL, on psycopg or asyncpg, through any supported library."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar
from weakref import WeakSet

from windlass.domain.job import NewJob
from windlass.errors import MigrationRequiredError
from windlass.stores import migrate
from windlass.stores.caller_transactions.commands import Command
from windlass.stores.caller_transactions.rules import TransactionStart, wrong_database
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, Step
from windlass.stores.postgres import session
from windlass.stores.postgres.database import PostgresDatabase
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.queries import Query

ROWS_AT_ONCE = 500
"""Number of rows in one statement: not every driver supports COPY, which has no limit."""

_IDLE, _UNKNOWN = 0, 4
"""Transaction states of libpq: outside a transaction, and unknown because the connection is lost."""


class CallerPostgresDialect(PostgresDialect):
    """The plans of PostgreSQL, without COPY."""

    copy_from: ClassVar[int] = ROWS_AT_ONCE + 1

    def insert_jobs(self, jobs: Sequence[NewJob], *, alone: bool, notification: str | None) -> Plan[None]:
        """Store rows with statements of bounded size; the last one sends the notification."""
        del alone
        for start in range(0, len(jobs), ROWS_AT_ONCE):
            part = jobs[start : start + ROWS_AT_ONCE]
            last = start + ROWS_AT_ONCE >= len(jobs)
            yield from super().insert_jobs(part, alone=False, notification=notification if last else None)


class PostgresRules:
    """PostgreSQL: as on the application's own connections, without COPY and prepared statements."""

    writes_first: ClassVar[bool] = False

    def __init__(self, database: PostgresDatabase) -> None:
        self.dialect: Dialect = CallerPostgresDialect()
        self.installation: tuple[Any, ...] | None = None
        self._description = database.description
        self._virtual_now = database.virtual_now
        self._statements = session.Statements(virtual=database.virtual_now is not None)
        self._checked: WeakSet[Any] = WeakSet()

    def transaction_start(self, driver: Any) -> TransactionStart:
        """Begin only in autocommit mode: otherwise the driver begins before any statement, even a savepoint."""
        if driver.autocommit and driver.info.transaction_status == _IDLE:
            return TransactionStart("BEGIN", commits=True)
        return TransactionStart()

    def in_transaction(self, driver: Any) -> bool:
        """Return whether a transaction is open; a failed one counts."""
        return driver.info.transaction_status not in (_IDLE, _UNKNOWN)

    def preparation(self) -> Generator[Command, Any, None]:
        """Prepare nothing."""
        yield from ()

    def query(self, step: Step) -> Query:
        """Return the statement a step names."""
        return self._statements.query(step)

    def text(self, query: Query, literals: Mapping[str, int] | None, *, pyformat: bool) -> str:
        """Return the text as for the application's own connections."""
        del pyformat  # true for all drivers
        return self._statements.text(query, literals)

    def parameters(self) -> Mapping[str, Any]:
        """Return the time, if the clock is virtual."""
        return {"now": self._virtual_now()} if self._virtual_now else {}

    def check_database(self, driver: Any) -> Plan[None]:
        """Compare the database's name and the creation time of our tables, once per connection."""
        known = getattr(driver, "connection", driver)  # `AsyncpgState` is a new object each time
        if known in self._checked:
            return
        found = yield from migrate.installation(self.dialect)
        if found != self.installation:
            raise wrong_database(self._description, f"a database named {found[0]!r} on some server")
        self._checked.add(known)

    def translate(self, error: BaseException) -> Exception | None:
        """Return `MigrationRequiredError` if our tables are not found: another database, or another search path."""
        for link in (error, error.__cause__, getattr(error, "orig", None)):
            if getattr(link, "sqlstate", None) == "42P01":
                return MigrationRequiredError(
                    f"the tables of Windlass are not found through the connection given: {link}; it must lead to "
                    f"{self._description}, with the search_path under which `windlass migrate` made them"
                )
        return None
