"""Runs plans on a connection of the caller, as part of the caller's transaction.

The transaction control is itself a generator of statements in the driver's form: one body for sync and async.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from windlass.domain.caller_connections import ConnectionKind, kind_of
from windlass.errors import InvalidOptionError, StoreUnavailableError
from windlass.stores import migrate
from windlass.stores.caller_transactions.asyncpg_connections import CallerAsyncpg
from windlass.stores.caller_transactions.closed import check_open
from windlass.stores.caller_transactions.commands import Command
from windlass.stores.caller_transactions.connections import CallerConnection, CallerPsycopgAsync, wrap_connection
from windlass.stores.caller_transactions.rules import DatabaseRules, commands_of, wrong_database
from windlass.stores.caller_transactions.sqlite_rules import SqliteRules
from windlass.stores.database import MOST_RESTARTS, Database, P, PlanFunction
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan, RestartPlanError, check_promises
from windlass.stores.sqlite.dialect import SqliteDatabase

T = TypeVar("T")

Commands = Generator[Command, Any, T]

SAVEPOINT, ROLL_BACK, RELEASE = "SAVEPOINT windlass", "ROLLBACK TO SAVEPOINT windlass", "RELEASE SAVEPOINT windlass"


class CallerPlanRunner:
    """Runs an application's plans on callers' connections. Commits only transactions that it began itself."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rules = _rules_for(database)

    @property
    def writes_first(self) -> bool:
        """Whether a plan's first statement must be a write."""
        return self._rules.writes_first

    def run(self, connection: Any, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan on a sync connection."""
        kind = _kind(connection, is_async=False)
        check_open(connection, kind)
        if self._rules.installation is None:
            self._rules.installation = self._database.read(migrate.installation)
        return self._play(connection, kind, lambda dialect: plan(dialect, *args, **kwargs))

    async def arun(self, connection: Any, plan: PlanFunction[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plan on an async connection."""
        kind = _kind(connection, is_async=True)
        check_open(connection, kind)
        if self._rules.installation is None:
            self._rules.installation = await self._database.aread(migrate.installation)

        def started(dialect: Dialect) -> Plan[T]:
            return plan(dialect, *args, **kwargs)

        if kind is ConnectionKind.SQLALCHEMY_ASYNC:
            result: T = await connection.run_sync(lambda sync: self._play(sync, kind, started))
            return result
        wrapped = (CallerAsyncpg if kind is ConnectionKind.ASYNCPG else CallerPsycopgAsync)(connection)
        self._check_dialect(wrapped.database)
        await wrapped.catch_up()
        return await _aplay(
            _run_in_transaction(self._rules, wrapped.driver, wrapped.pyformat, started), wrapped.execute
        )

    def _play(self, connection: Any, kind: ConnectionKind, plan: Callable[[Dialect], Plan[T]]) -> T:
        wrapped: CallerConnection = wrap_connection(connection, kind)
        self._check_dialect(wrapped.database)
        return _play(_run_in_transaction(self._rules, wrapped.driver, wrapped.pyformat, plan), wrapped.execute)

    def _check_dialect(self, database: str) -> None:
        if database != self._rules.dialect.name:
            raise wrong_database(self._database.description, {"sqlite": "SQLite", "postgres": "PostgreSQL"}[database])


def _rules_for(database: Database) -> DatabaseRules:
    if isinstance(database, SqliteDatabase):
        return SqliteRules(database)
    from windlass.stores.caller_transactions.postgres_rules import PostgresRules  # both need its driver
    from windlass.stores.postgres.database import PostgresDatabase

    assert isinstance(database, PostgresDatabase)
    return PostgresRules(database)


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


def _run_in_transaction(
    rules: DatabaseRules, driver: Any, pyformat: bool, plan: Callable[[Dialect], Plan[T]]
) -> Commands[T]:
    """Run the plan completely or not at all: in the caller's transaction, or in one that is begun for it."""
    begin, commits = rules.transaction_start(driver)
    if begin is None:
        return (yield from _run_in_savepoint(rules, driver, pyformat, plan))
    yield Command(begin)
    try:
        result = yield from _run_in_savepoint(rules, driver, pyformat, plan)
        if commits:
            yield Command("COMMIT")
    except GeneratorExit:
        raise
    except BaseException as error:
        if rules.in_transaction(driver):
            yield from _roll_back(error, "ROLLBACK")  # it contains only our own writes
        raise
    return result


def _run_in_savepoint(
    rules: DatabaseRules, driver: Any, pyformat: bool, plan: Callable[[Dialect], Plan[T]]
) -> Commands[T]:
    """Run the plan in a savepoint, again after a lost race; the transaction around it stays usable after errors."""
    for _ in range(MOST_RESTARTS):
        yield Command(SAVEPOINT)
        try:
            yield from _steps(rules, pyformat, rules.check_database(driver))
            yield from rules.preparation()
            result = yield from _steps(rules, pyformat, plan(rules.dialect))
        except GeneratorExit:
            raise
        except BaseException as error:
            if rules.in_transaction(driver):
                yield from _roll_back(error, ROLL_BACK, RELEASE)
            if isinstance(error, RestartPlanError):
                continue
            if (translated := rules.translate(error)) is not None:
                raise translated from error
            raise
        yield Command(RELEASE)
        return result
    raise StoreUnavailableError(f"other writers took the same keys first {MOST_RESTARTS} times in a row; try again")


def _roll_back(error: BaseException, *texts: str) -> Commands[None]:
    """Roll back after an error, which is raised even if the rollback fails."""
    try:
        for text in texts:
            yield Command(text)
    except Exception as second:  # noqa: BLE001 - added to the first error as a note
        error.add_note(f"and then {texts[0]} failed: {second}")


def _steps(rules: DatabaseRules, pyformat: bool, plan: Plan[T]) -> Commands[T]:
    try:
        first = step = next(plan)
        while True:
            following = plan.send((yield from commands_of(rules, step, pyformat=pyformat)))
            check_promises(first, step, following)
            step = following
    except StopIteration as stop:
        result: T = stop.value
        return result


def _play(commands: Commands[T], execute: Callable[[Command], Any]) -> T:
    """Run commands; errors are raised in the generator, where the command was yielded."""
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
    """Do `_play`, awaited."""
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
