"""Runs a plan on a connection of the caller's, as a part of the caller's transaction that stands or falls with it.

The transaction control is itself a generator, of statements as drivers take them: one body for sync and async.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from windlass.domain.caller_connections import ConnectionKind, kind_of
from windlass.errors import InvalidOptionError, StoreUnavailableError
from windlass.stores import migrate
from windlass.stores.caller_transactions.asyncpg_connections import LentAsyncpg
from windlass.stores.caller_transactions.closed import check_open
from windlass.stores.caller_transactions.commands import Command
from windlass.stores.caller_transactions.connections import Lent, LentPsycopgAsync, lend
from windlass.stores.caller_transactions.rules import Terms, another, answers
from windlass.stores.caller_transactions.sqlite_rules import SqliteTerms
from windlass.stores.database import MOST_RESTARTS, Database, P, PlanFunction
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, RestartPlanError, check_promises
from windlass.stores.sqlite.dialect import SqliteDatabase

T = TypeVar("T")

Commands = Generator[Command, Any, T]

SAVE, UNDO, KEEP = "SAVEPOINT windlass", "ROLLBACK TO SAVEPOINT windlass", "RELEASE SAVEPOINT windlass"


class Loans:
    """Runs plans of one application on connections that are not its own. Commits nothing that it did not begin."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._terms = _terms_for(database)

    @property
    def writes_first(self) -> bool:
        """Whether a plan's first statement must be a write."""
        return self._terms.writes_first

    def run(self, connection: Any, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan on a sync connection."""
        kind = _kind(connection, is_async=False)
        check_open(connection, kind)
        if self._terms.home is None:
            self._terms.home = self._database.read(migrate.installation)
        return self._play(connection, kind, lambda dialect: plan(dialect, *args, **kwargs))

    async def arun(self, connection: Any, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan on an async connection."""
        kind = _kind(connection, is_async=True)
        check_open(connection, kind)
        if self._terms.home is None:
            self._terms.home = await self._database.aread(migrate.installation)

        def started(dialect: Dialect) -> Plan[T]:
            return plan(dialect, *args, **kwargs)

        if kind is ConnectionKind.SQLALCHEMY_ASYNC:
            result: T = await connection.run_sync(lambda sync: self._play(sync, kind, started))
            return result
        lent = (LentAsyncpg if kind is ConnectionKind.ASYNCPG else LentPsycopgAsync)(connection)
        self._check_dialect(lent.database)
        await lent.catch_up()
        return await _aplay(_borrow(self._terms, lent.driver, lent.pyformat, started), lent.execute)

    def _play(self, connection: Any, kind: ConnectionKind, plan: Callable[[Dialect], Plan[T]]) -> T:
        lent: Lent = lend(connection, kind)
        self._check_dialect(lent.database)
        return _play(_borrow(self._terms, lent.driver, lent.pyformat, plan), lent.execute)

    def _check_dialect(self, database: str) -> None:
        if database != self._terms.dialect.name:
            raise another(self._database.description, {"sqlite": "SQLite", "postgres": "PostgreSQL"}[database])


def _terms_for(database: Database) -> Terms:
    if isinstance(database, SqliteDatabase):
        return SqliteTerms(database)
    from windlass.stores.caller_transactions.postgres_rules import PostgresTerms  # both need its driver
    from windlass.stores.postgres.database import PostgresDatabase

    assert isinstance(database, PostgresDatabase)
    return PostgresTerms(database)


def _kind(connection: Any, *, is_async: bool) -> ConnectionKind:
    kind = kind_of(connection)
    assert kind is not None, "options were checked"
    if kind.is_async and not is_async:
        raise InvalidOptionError(
            f"connection is async ({kind.value}), which enqueue() cannot await; "
            "write `await ….aenqueue(…)`, or `await app.aenqueue_many(…)`"
        )
    if is_async and not kind.is_async:
        raise InvalidOptionError(
            f"connection is not async ({kind.value}), and aenqueue() would block the event loop with it; "
            "write `….enqueue(…)` or `app.enqueue_many(…)` where the connection is used, or give an async connection"
        )
    return kind


# ---------------------------------------------------------------------- the transaction, as statements


def _borrow(terms: Terms, driver: Any, pyformat: bool, plan: Callable[[Dialect], Plan[T]]) -> Commands[T]:
    """The plan, whole or not at all: in the caller's transaction, or in one that is begun for it."""
    begin, commits = terms.opening(driver)
    if begin is None:
        return (yield from _saved(terms, driver, pyformat, plan))
    yield Command(begin)
    try:
        result = yield from _saved(terms, driver, pyformat, plan)
        if commits:
            yield Command("COMMIT")
    except GeneratorExit:
        raise
    except BaseException as error:
        if terms.in_transaction(driver):
            yield from _undone(error, "ROLLBACK")  # there is nothing in it but what we did
        raise
    return result


def _saved(terms: Terms, driver: Any, pyformat: bool, plan: Callable[[Dialect], Plan[T]]) -> Commands[T]:
    """The plan in a savepoint, again after a lost race; whatever fails, the transaction around it stays usable."""
    for _ in range(MOST_RESTARTS):
        yield Command(SAVE)
        try:
            yield from _steps(terms, pyformat, terms.check_home(driver))
            yield from terms.preparation()
            result = yield from _steps(terms, pyformat, plan(terms.dialect))
        except GeneratorExit:
            raise
        except BaseException as error:
            if terms.in_transaction(driver):
                yield from _undone(error, UNDO, KEEP)
            if isinstance(error, RestartPlanError):
                continue
            if (explained := terms.explained(error)) is not None:
                raise explained from error
            raise
        yield Command(KEEP)
        return result
    raise StoreUnavailableError(f"others took the same keys first {MOST_RESTARTS} times in a row; try again")


def _undone(error: BaseException, *texts: str) -> Commands[None]:
    """Undo after an error, which is the one to be raised, whatever becomes of this."""
    try:
        for text in texts:
            yield Command(text)
    except Exception as another_error:  # noqa: BLE001 - told along with the error that came first
        error.add_note(f"and then {texts[0]} failed: {another_error}")


def _steps(terms: Terms, pyformat: bool, plan: Plan[T]) -> Commands[T]:
    try:
        first = step = next(plan)
        while True:
            following = plan.send((yield from answers(terms, step, pyformat=pyformat)))
            check_promises(first, step, following)
            step = following
    except StopIteration as stop:
        result: T = stop.value
        return result


def _play(commands: Commands[T], execute: Callable[[Command], Any]) -> T:
    """Run commands; what fails is raised where the command was given."""
    try:
        command = next(commands)
        while True:
            try:
                answer = execute(command)
            except BaseException as error:  # noqa: BLE001 - raised again, after what it takes to undo
                command = commands.throw(error)
            else:
                command = commands.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def _aplay(commands: Commands[T], execute: Callable[[Command], Awaitable[Any]]) -> T:
    """`_play`, awaited."""
    try:
        command = next(commands)
        while True:
            try:
                answer = await execute(command)
            except BaseException as error:  # noqa: BLE001 - raised again, after what it takes to undo
                command = commands.throw(error)
            else:
                command = commands.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
