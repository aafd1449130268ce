"""Preparation of your own connections to the SQLite file that Windlass uses."""

from __future__ import annotations

from typing import Any

from windlass.errors import InvalidOptionError

__all__ = ["prepare"]


def prepare(connection: Any, record: object = None) -> None:
    """Make a connection of your own safe to write with, while workers run on the same file.

    It turns off automatic checkpoints on this connection: SQLite before 3.51.3 may damage a file when one connection
    makes a checkpoint while another one writes, so Windlass makes them itself, under a lock. Call it once for every
    connection, right after it was opened. It takes what has a DB-API cursor (`sqlite3`, Django) and fits the `connect`
    event of a SQLAlchemy engine, async ones too, which passes a `record` that is not used.

    ```python
    connection = sqlite3.connect("shop.db")
    prepare(connection)
    ```
    """
    del record
    if not callable(getattr(connection, "cursor", None)):
        raise InvalidOptionError(
            f"expected a connection with a cursor(), as sqlite3.connect() or the connect event of a SQLAlchemy engine "
            f"gives it, got {connection!r}"
        )
    cursor = connection.cursor()
    try:
        cursor.execute("PRAGMA wal_autocheckpoint = 0")
    finally:
        cursor.close()
