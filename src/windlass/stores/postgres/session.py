"""Runs the steps of a plan on one PostgreSQL connection, and classifies the driver's errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

import psycopg
from psycopg import pq
from psycopg.adapt import Buffer, Loader

from windlass.errors import StoreStatementError, StoreUnavailableError
from windlass.stores.database import MOST_RESTARTS, ErrorKind
from windlass.stores.plan import SCRIPT, Step
from windlass.stores.postgres.statements import Statement
from windlass.stores.postgres.wire import Wire
from windlass.stores.queries import Query, load, to_numbered, to_pyformat

NOW = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
"""The time when the statement started: current even in an old transaction, and constant for the planner."""
MOMENT = NOW.replace("statement_timestamp", "clock_timestamp")
"""The current time, for a statement that may have waited for a lock."""
VIRTUAL = ":now::bigint"
"""Both, where the clock is virtual."""

STATEMENT_TIMEOUT = 30.0
"""Seconds without an answer after which a statement fails."""
COPY_TIMEOUT = 600.0
"""The same for COPY, whose duration depends on the caller's rows."""


class _IdLoader(Loader):
    """Loads ids as text from their 16 bytes."""

    format = pq.Format.BINARY

    def load(self, data: Buffer) -> str:
        digits = bytes(data).hex()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class Statements:
    """The named statements in the driver's form."""

    def __init__(self, *, virtual: bool = False) -> None:
        self._queries = load("postgres")
        self._times = {"{now}": VIRTUAL if virtual else NOW, "{moment}": VIRTUAL if virtual else MOMENT}
        self._texts: dict[tuple[str, tuple[tuple[str, int], ...]], str] = {}
        self._plain: dict[str, Statement] = {}
        self._numbered: dict[tuple[str, tuple[tuple[str, int], ...]], Statement] = {}

    def query(self, step: Step) -> Query:
        """Return the statement a step names."""
        return self._queries[step.name]

    def text(self, query: Query, literals: Mapping[str, int] | None) -> LiteralString:
        """Return the text of a statement, with its literals filled in."""
        key = (query.name, tuple(sorted(literals.items())) if literals else ())
        text = self._texts.get(key)
        if text is None:
            text = self._filled(query, key[1])
            text = self._texts[key] = text if text.startswith("COPY") else to_pyformat(text)
        return text

    def numbered(self, step: Step) -> Statement:
        """Return the statement of a step in the server's form, with numbered parameters."""
        if not step.literals:
            statement = self._plain.get(step.name)
            if statement is None:
                statement = self._plain[step.name] = self._make(step.name, ())
            return statement
        key = (step.name, tuple(sorted(step.literals.items())))
        statement = self._numbered.get(key)
        if statement is None:
            statement = self._numbered[key] = self._make(*key)
        return statement

    def _make(self, name: str, literals: tuple[tuple[str, int], ...]) -> Statement:
        query = self._queries[name]
        text, names = to_numbered(self._filled(query, literals))
        return Statement(text.encode(), names, query.kind)

    def _filled(self, query: Query, literals: tuple[tuple[str, int], ...]) -> str:
        text = query.sql
        for name, time in self._times.items():
            text = text.replace(name, time)
        for name, value in literals:
            text = text.replace(f"{{{name}}}", str(int(value)))
        return text


def limit_of(step: Step) -> float | None:
    """Return how many seconds a step may take; None for migrations, which wait for each other and build indexes."""
    if step.name in (SCRIPT, "lock_migrations"):
        return None
    return COPY_TIMEOUT if step.name.startswith("copy_") else STATEMENT_TIMEOUT


def prepare_connection(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Register the loaders that every connection of ours needs."""
    connection.adapters.register_loader("uuid", _IdLoader)


async def execute(wire: Wire, statements: Statements, step: Step, extra: Mapping[str, Any]) -> Any:
    """Run one step, with the commit if `wire` is set to send it along."""
    if step.name == SCRIPT:
        return await wire.script(step.params["text"])
    statement = statements.numbered(step)
    if step.then is not None:
        calls = [(statement, {**step.params, **extra}), (statements.numbered(step.then), {**step.then.params, **extra})]
        return await wire.execute_together(calls)
    if statement.text.startswith(b"COPY"):
        return await wire.copy(statement.text, step.params["texts"])
    if step.rows is None:
        return await wire.execute(statement, {**step.params, **extra} if extra else step.params)
    return [await wire.execute(statement, {**row, **extra}) for row in step.rows]


_ONLY_READS = "25006"
_UNUSABLE = frozenset({_ONLY_READS, "25P03", "25P04"})
"""The session is read-only, or the server has ended the transaction: another connection may succeed."""

_LIMIT = "54"
"""A limit of the server was exceeded: a value is too large for an index, JSON is nested too deeply."""
_ADVICE = {
    "42501": "grant the right to the user of the URL (to migrate: CREATE on the schema), or use another user",
    "42601": "the server may be one that only resembles PostgreSQL",
    "26000": "this may be a pooler: in transaction mode add ?pooled=true to the URL",
    "42P05": "this may be a pooler: in transaction mode add ?pooled=true to the URL",
}
_SCHEMA = frozenset({"42703", "42P01", "42883", "42804", "42P10"})
"""A table, column, function or constraint is missing or different."""


def kind_of(error: BaseException) -> ErrorKind:
    """Return what a driver's error means."""
    if getattr(error, "sqlstate", None) in _UNUSABLE:
        return ErrorKind.GONE
    if isinstance(error, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure):
        return ErrorKind.RESTART
    if isinstance(error, psycopg.errors.DataError | psycopg.errors.IntegrityError | UnicodeError):
        return ErrorKind.DATA
    if str(getattr(error, "sqlstate", None)).startswith(_LIMIT):
        return ErrorKind.DATA
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | OSError | TimeoutError):
        return ErrorKind.GONE
    return ErrorKind.STATEMENT


def only_reads(error: BaseException) -> bool:
    """Return whether a write was refused because its session is read-only: a new session may succeed.

    A session keeps the mode in which it was opened. One that was opened while the server was read-only shows this at
    its first write, perhaps long after the server became writable; that write is repeated on a new connection.
    """
    return getattr(error, "sqlstate", None) == _ONLY_READS


def unavailable(description: str, error: BaseException) -> StoreUnavailableError:
    """Return the error users see when the server does not answer."""
    detail = _first_line(error)
    advice = "check the URL and the server"
    if "unsupported startup parameter" in detail:
        advice = "this is a pooler: in transaction mode add ?pooled=true to the URL"
    return StoreUnavailableError(f"{description} does not answer: {detail}; {advice}")


def contended(description: str, error: BaseException) -> StoreUnavailableError:
    """Return the error users see when no restart of a plan succeeded."""
    return StoreUnavailableError(
        f"{description}: conflicts with other writers {MOST_RESTARTS} times in a row ({_first_line(error)}); try again"
    )


def refused(description: str, error: BaseException) -> StoreStatementError:
    """Return the error users see when the server answers, and refuses a statement."""
    state = getattr(error, "sqlstate", None) or ""
    advice = _ADVICE.get(state, "look into the server's log")
    if state in _SCHEMA:
        advice = "the tables are not as `windlass migrate` creates them: they were changed, or the search_path was"
    name = f" ({type(error).__name__} {state})".replace(" )", ")")
    return StoreStatementError(f"{description} refuses a statement: {_first_line(error)}{name}; {advice}")


def _first_line(error: BaseException) -> str:
    """Return the first line of a message: further lines may show the values of a row."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
