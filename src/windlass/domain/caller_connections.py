"""The kinds of connections that callers may enqueue on, recognised by the names of their classes.

None of those libraries is imported here: a caller that has such an object has imported its library.
"""

from enum import Enum
from typing import Any, Final

from windlass.errors import InvalidOptionError

SUPPORTED: Final = (
    "a sqlite3.Connection, a psycopg (version 3) Connection or AsyncConnection, an asyncpg connection, a SQLAlchemy "
    "Connection, Session, AsyncConnection or AsyncSession, or django.db.connection"
)


class ConnectionKind(Enum):
    """The interface of a connection."""

    SQLITE3 = "sqlite3"
    PSYCOPG = "psycopg"
    PSYCOPG_ASYNC = "psycopg, async"
    ASYNCPG = "asyncpg"
    SQLALCHEMY = "SQLAlchemy"
    SQLALCHEMY_ASYNC = "SQLAlchemy, async"
    DJANGO = "Django"

    @property
    def is_async(self) -> bool:
        """Whether it has to be awaited."""
        return self in (ConnectionKind.PSYCOPG_ASYNC, ConnectionKind.ASYNCPG, ConnectionKind.SQLALCHEMY_ASYNC)


_KINDS: Final = {
    ("sqlite3", "Connection"): ConnectionKind.SQLITE3,
    ("psycopg", "Connection"): ConnectionKind.PSYCOPG,
    ("psycopg", "AsyncConnection"): ConnectionKind.PSYCOPG_ASYNC,
    ("asyncpg", "Connection"): ConnectionKind.ASYNCPG,
    ("asyncpg", "PoolConnectionProxy"): ConnectionKind.ASYNCPG,
    ("sqlalchemy", "Connection"): ConnectionKind.SQLALCHEMY,
    ("sqlalchemy", "Session"): ConnectionKind.SQLALCHEMY,
    ("sqlalchemy", "scoped_session"): ConnectionKind.SQLALCHEMY,
    ("sqlalchemy", "AsyncConnection"): ConnectionKind.SQLALCHEMY_ASYNC,
    ("sqlalchemy", "AsyncSession"): ConnectionKind.SQLALCHEMY_ASYNC,
    ("sqlalchemy", "async_scoped_session"): ConnectionKind.SQLALCHEMY_ASYNC,
    ("django", "BaseDatabaseWrapper"): ConnectionKind.DJANGO,
    ("django", "ConnectionProxy"): ConnectionKind.DJANGO,
}


def kind_of(connection: object) -> ConnectionKind | None:
    """Return the kind by the object's class or a base class; None if it is not supported."""
    for cls in type(connection).__mro__:
        kind = _KINDS.get((cls.__module__.partition(".")[0], cls.__name__))
        if kind is not None:
            return kind
    return None


def check_connection(value: object) -> Any:
    """Return the value of option `connection`, or raise InvalidOptionError."""
    if kind_of(value) is None:
        cls = type(value)
        raise InvalidOptionError(
            f"connection must be {SUPPORTED}, got an object of {cls.__module__}.{cls.__qualname__}; "
            "pass the connection or session whose transaction the job should belong to"
        )
    return value
