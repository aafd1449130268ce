"""asyncpg as a lender: parameters by number, the state of the transaction as libpq tells it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from windlass.stores.caller_transactions.commands import Command, answer

IDLE, IN_TRANSACTION, UNKNOWN = 0, 2, 4
"""Of libpq's transaction states."""

_PARAMETER: Final = re.compile(r"%\((\w+)\)s(::\w+\[\])?|%%")


@lru_cache(maxsize=256)
def _numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """`%(name)s` → `$1`, and which name each number stands for.

    Arrays come as text literals, which asyncpg takes for a parameter that is a text, and PostgreSQL then reads.
    """
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name, array = found.groups()
        if name is None:
            return "%"
        place = f"${numbers.setdefault(name, len(numbers) + 1)}"
        return f"{place}::text{array}" if array else place

    return _PARAMETER.sub(number, text), tuple(numbers)


def numbered(command: Command) -> tuple[str, tuple[Any, ...]]:
    """A statement as asyncpg takes it."""
    if command.params is None:
        return command.text, ()
    text, names = _numbered(command.text)
    return text, tuple(command.params[name] for name in names)


class AsyncpgState:
    """An asyncpg connection as `PostgresRules` looks at it: with the names that psycopg has for its state."""

    def __init__(self, connection: Any, *, autocommit: bool = True) -> None:
        self.connection = getattr(connection, "_con", None) or connection  # of a pool: the connection behind its proxy
        self.autocommit = autocommit

    @property
    def info(self) -> AsyncpgState:
        """Itself."""
        return self

    @property
    def closed(self) -> bool:
        """Whether it is of no more use."""
        return bool(self.connection.is_closed())

    @property
    def transaction_status(self) -> int:
        """As libpq counts; a transaction that failed is one, too."""
        if self.closed:
            return UNKNOWN
        return IN_TRANSACTION if self.connection.is_in_transaction() else IDLE


class CallerAsyncpg:
    """An `asyncpg.Connection`, or one of a pool."""

    database = "postgres"
    pyformat = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.driver = AsyncpgState(connection)

    async def catch_up(self) -> None:
        """Every statement of the caller's has been answered."""

    async def execute(self, command: Command) -> Any:
        """By its own methods: the number of rows is at the end of what PostgreSQL answers, e.g. `INSERT 0 3`."""
        text, params = numbered(command)
        if command.kind == "count":
            done: str = await self._connection.execute(text, *params)
            last = done.rpartition(" ")[2]
            return int(last) if last.isdigit() else -1
        return answer(command.kind, await self._connection.fetch(text, *params), 0)
