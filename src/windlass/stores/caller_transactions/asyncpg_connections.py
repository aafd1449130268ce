"""Connections of asyncpg: numbered parameters, and the transaction state by libpq's numbers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from windlass.stores.caller_transactions.commands import Command, answer

IDLE, IN_TRANSACTION, UNKNOWN = 0, 2, 4
"""Transaction states of libpq."""

_PARAMETER: Final = re.compile(r"%\((\w+)\)s(::\w+\[\])?|%%")


@lru_cache(maxsize=256)
def _numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """Convert `%(name)s` to `$1`; return also the name of each number.

    Arrays are text literals: the parameter is declared as text, which PostgreSQL then casts to an array.
    """
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name, array = found.groups()
        if name is None:
            return "%"
        parameter = f"${numbers.setdefault(name, len(numbers) + 1)}"
        return f"{parameter}::text{array}" if array else parameter

    return _PARAMETER.sub(number, text), tuple(numbers)


def numbered(command: Command) -> tuple[str, tuple[Any, ...]]:
    """Return the text and the parameters of a statement in asyncpg's form."""
    if command.params is None:
        return command.text, ()
    text, names = _numbered(command.text)
    return text, tuple(command.params[name] for name in names)


class AsyncpgState:
    """The state of an asyncpg connection under psycopg's names, for `PostgresRules`."""

    def __init__(self, connection: Any, *, autocommit: bool = True) -> None:
        self.connection = getattr(connection, "_con", None) or connection  # the connection behind a pool's proxy
        self.autocommit = autocommit

    @property
    def info(self) -> AsyncpgState:
        """This object."""
        return self

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return bool(self.connection.is_closed())

    @property
    def transaction_status(self) -> int:
        """The state by libpq's numbers; a failed transaction counts as open."""
        if self.closed:
            return UNKNOWN
        return IN_TRANSACTION if self.connection.is_in_transaction() else IDLE


class CallerAsyncpg:
    """An `asyncpg.Connection`, also one from a pool."""

    database = "postgres"
    pyformat = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.driver = AsyncpgState(connection)

    async def catch_up(self) -> None:
        """Do nothing: every statement of the caller has been answered."""

    async def execute(self, command: Command) -> Any:
        """Run a statement; the row count is at the end of PostgreSQL's answer, e.g. `INSERT 0 3`."""
        text, params = numbered(command)
        if command.kind == "count":
            done: str = await self._connection.execute(text, *params)
            last = done.rpartition(" ")[2]
            return int(last) if last.isdigit() else -1
        return answer(command.kind, await self._connection.fetch(text, *params), 0)
