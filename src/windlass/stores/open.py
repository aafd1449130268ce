"""From a URL to a database."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from windlass.domain.clock import SystemClock, micros
from windlass.errors import ConfigurationError
from windlass.spi import Clock
from windlass.stores.database import Database
from windlass.stores.dialects.sqlite import SqliteDatabase

EXAMPLES = "sqlite:///shop.db, sqlite:// (in memory) or postgresql://user@host/database"


def open_database(url: str, clock: Clock) -> Database:
    """Make the database a URL names; nothing is connected yet."""
    scheme = urlsplit(url).scheme.partition("+")[0]
    if scheme == "sqlite":
        return _sqlite(url, clock)
    if scheme in ("postgresql", "postgres"):
        return _postgres(url, clock)
    raise ConfigurationError(f"expected a store URL such as {EXAMPLES}, got {_hide(url)!r}")


def _now(clock: Clock) -> Callable[[], int]:
    return lambda: micros(clock.now())


def _sqlite(url: str, clock: Clock) -> Database:
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    if parts.netloc:
        raise ConfigurationError(
            f"{url!r} has a host, but SQLite is a file: write three slashes for a relative path "
            "(sqlite:///shop.db), four for an absolute one"
        )
    synchronous = options.pop("synchronous", ["FULL"])[-1].upper()
    if options or synchronous not in ("FULL", "NORMAL"):
        raise ConfigurationError(f"{url!r}: the only option of a SQLite URL is synchronous=full (durable) or normal")
    path = parts.path.removeprefix("/") or ":memory:"
    now = SystemClock().micros if isinstance(clock, SystemClock) else _now(clock)
    return SqliteDatabase(path, now, synchronous)


def _postgres(url: str, clock: Clock) -> Database:
    try:
        from windlass.stores.dialects.postgres_database import PostgresDatabase
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
    """A URL without its password, for messages."""
    parts = urlsplit(url)
    return url.replace(f":{parts.password}@", ":[REDACTED]@") if parts.password else url
