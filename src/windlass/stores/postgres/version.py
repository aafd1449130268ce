"""The PostgreSQL versions that Windlass supports. The version comes with the connection: no statement is needed."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from windlass.errors import ConfigurationError

OLDEST: Final = 15
"""The oldest major version whose SQL our statements are written in, and on which they are tested."""


def version_text(number: int) -> str:
    """Return a server's version as text: 150018 is 15.18, 90624 is 9.6.24."""
    if number >= 100_000:
        return f"{number // 10_000}.{number % 10_000}"
    return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"


def is_too_old(number: int, oldest: int) -> bool:
    """Return whether a server of this version number is older than the major version `oldest`."""
    return number < oldest * 10_000


def check_version(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], description: str) -> None:
    """Raise `ConfigurationError` if the server is too old.

    Not `StoreUnavailableError`, which means that a retry may help.
    """
    number = connection.info.server_version
    if is_too_old(number, OLDEST):
        raise ConfigurationError(
            f"{description}: expected PostgreSQL {OLDEST} or newer, the server is PostgreSQL {version_text(number)}; "
            "upgrade the server, or give the URL of a newer one"
        )
