"""Opens a database by its URL."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from windlass.domain.clock import SystemClock, micros
from windlass.errors import ConfigurationError
from windlass.spi import Clock
from windlass.stores.database import Database
from windlass.stores.sqlite.dialect import SqliteDatabase
from windlass.stores.sqlite.location import IN_MEMORY

_FILE: Final = re.compile(r"[^:?#]*\.(db|sqlite3?)")

DEFAULT_URL: Final = "sqlite:///windlass.db"
EXAMPLES: Final = "sqlite:///shop.db, sqlite:// (in memory) or postgresql://user@host/database"
SQLITE_FORMS: Final = (
    "write sqlite:///shop.db for a path relative to the current folder, sqlite:////var/lib/shop.db for an absolute "
    "one, sqlite:// for a store in memory"
)


class StoreUrl(NamedTuple):
    """The URL of a store, and whether it was chosen or is the default."""

    text: str
    is_default: bool = False


def choose_url(given: str | None, environ: Mapping[str, str] = os.environ) -> StoreUrl:
    """Return the URL given in code, else that of `WINDLASS_URL`, else the default. An empty one is an error."""
    if given is not None:
        return StoreUrl(given)
    named = environ.get("WINDLASS_URL")
    if named is None:
        return StoreUrl(DEFAULT_URL, is_default=True)
    if not named.strip():
        raise ConfigurationError(
            f"the variable WINDLASS_URL is empty; expected a store URL such as {EXAMPLES}. "
            f"Set it, or unset it to use {DEFAULT_URL}"
        )
    return StoreUrl(named)


def open_database(url: str, clock: Clock, *, is_default: bool = False) -> Database:
    """Return the database of a URL; nothing is connected yet."""
    given: object = url
    if not isinstance(given, str):
        hint = f"; write {f'sqlite:///{given}'!r}" if isinstance(given, PurePath) else ""
        raise ConfigurationError(f"expected a store URL as text, such as {EXAMPLES}, got {given!r}{hint}")
    named, _, rest = url.partition(":")
    scheme = named.partition("+")[0].lower()
    if scheme == "sqlite":
        return _sqlite(url, rest, clock, is_default=is_default)
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        return _postgres(url, clock)
    hint = f"; did you mean sqlite:///{url}?" if _FILE.fullmatch(url) else ""
    raise ConfigurationError(f"expected a store URL such as {EXAMPLES}, got {_hide(url)!r}{hint}")


def _now(clock: Clock) -> Callable[[], int]:
    return lambda: micros(clock.now())


def _sqlite(url: str, rest: str, clock: Clock, *, is_default: bool) -> Database:
    location, _, query = rest.partition("?")
    if not location.startswith("//") or "\0" in location:
        raise ConfigurationError(f"{url!r} is not the URL of a SQLite store: {SQLITE_FORMS}")
    host, slash, path = location[2:].partition("/")
    if host:
        raise ConfigurationError(f"{url!r} has a host, but SQLite is a file: {SQLITE_FORMS}")
    if slash and not path:
        raise ConfigurationError(f"{url!r} names no file: {SQLITE_FORMS}")
    options = parse_qs(query, keep_blank_values=True)
    synchronous = options.pop("synchronous", ["FULL"])[-1].upper()
    if options or synchronous not in ("FULL", "NORMAL"):
        raise ConfigurationError(f"{url!r}: the only option of a SQLite URL is synchronous=full (durable) or normal")
    now = SystemClock().micros if isinstance(clock, SystemClock) else _now(clock)
    return SqliteDatabase(path or IN_MEMORY, now, synchronous, is_default=is_default)


def _postgres(url: str, clock: Clock) -> Database:
    try:
        from windlass.stores.postgres.database import PostgresDatabase
    except ImportError as error:
        raise ConfigurationError(
            'a PostgreSQL store needs its driver: pip install "windlass-jobs[postgres]"'
        ) from error
    base, _, query = url.partition("?")
    options = [part for part in query.split("&") if part]
    pooled = "pooled=true" in options
    options = [part for part in options if not part.startswith("pooled=")]
    virtual = None if isinstance(clock, SystemClock) else _now(clock)
    scheme, _, rest = base.partition("://")
    clean = f"{scheme.partition('+')[0]}://{rest}" + (f"?{'&'.join(options)}" if options else "")
    return PostgresDatabase(clean, virtual, pooled=pooled)


def _hide(url: str) -> str:
    """Return a URL without its password, for messages."""
    try:
        password = urlsplit(url).password
    except ValueError:  # not a valid address: the password cannot be located
        return f"{url.partition('://')[0]}://…"
    return url.replace(f":{password}@", ":[REDACTED]@") if password else url
