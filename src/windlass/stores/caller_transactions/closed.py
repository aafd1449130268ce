"""The check for closed connections, which are refused before anything is done on them."""

from __future__ import annotations

import sqlite3
from typing import Any

from windlass.domain.caller_connections import ConnectionKind
from windlass.errors import InvalidOptionError, StoreUnavailableError


def check_open(connection: Any, kind: ConnectionKind) -> None:
    """Raise an error with advice if the connection is closed."""
    if not _is_closed(connection, kind):
        return
    if getattr(connection, "broken", False):
        raise StoreUnavailableError(
            f"connection was lost ({kind.value}), and with it what its transaction had done; open another one, and try "
            "the whole transaction again"
        )
    raise InvalidOptionError(
        f"connection is closed ({kind.value}); enqueue before it is closed, inside the transaction that the job "
        "belongs to, or leave connection= out"
    )


def _is_closed(connection: Any, kind: ConnectionKind) -> bool:
    if kind is ConnectionKind.SQLITE3:
        return _is_closed_sqlite(connection)
    if kind is ConnectionKind.ASYNCPG:
        return _is_closed_asyncpg(connection)
    if kind is ConnectionKind.DJANGO:  # reconnects by itself, except in a transaction
        return bool(connection.closed_in_transaction)
    return bool(getattr(connection, "closed", False))  # SQLAlchemy sessions are never closed for good


def _is_closed_sqlite(connection: sqlite3.Connection) -> bool:
    try:
        _ = connection.in_transaction
    except sqlite3.ProgrammingError as error:
        return "closed" in str(error)
    return False


def _is_closed_asyncpg(connection: Any) -> bool:
    try:
        return bool(connection.is_closed())
    except Exception:  # noqa: BLE001 - it was returned to its pool
        return True
