"""Migrations: numbered SQL files per dialect, applied in order, each recorded with its checksum."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from windlass.errors import ConfigurationError, MigrationRequiredError, StoreUnavailableError
from windlass.runtime.forks import after_fork
from windlass.stores.database import Database
from windlass.stores.dialect import Dialect
from windlass.stores.plan import SCRIPT, Plan, Step


class Migration(NamedTuple):
    """One file."""

    version: int
    name: str
    script: str

    @property
    def checksum(self) -> str:
        """Hash of the file's text: a file that was applied must never change."""
        return hashlib.sha256(self.script.encode()).hexdigest()


@cache
def migrations(dialect: str) -> tuple[Migration, ...]:
    """Return all migrations of a dialect, in order."""
    folder = resources.files("windlass.stores").joinpath(dialect).joinpath("migrations")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(Migration(int(file.name[:4]), file.name[:-4], file.read_text(encoding="utf-8")) for file in files)


def pending(database: Database) -> list[Migration]:
    """Return the migrations still to be applied. An applied file whose text differs from ours is an error."""
    have = database.read(_applied)
    ours = migrations(database.dialect.name)
    for migration in ours:
        if have.get(migration.version, migration.checksum) != migration.checksum:
            raise ConfigurationError(
                f"migration {migration.name} was applied to {database.description} with another text; "
                "the schema may have been edited by hand: compare it with the file of that name"
            )
    return [migration for migration in ours if migration.version not in have]


def migrate(database: Database) -> list[str]:
    """Bring the schema up to date; return the names of applied migrations. Concurrent calls are safe."""
    return [migration.name for migration in pending(database) if database.run(_apply, migration)]


def require_used(database: Database) -> None:
    """Raise if nothing was ever stored there: for commands that only read and must create neither file nor schema.

    A server without our tables is refused by `require_current`.
    """
    database.require()
    if database.migrates_itself and not database.read(_applied):
        raise StoreUnavailableError(
            f"{database.description} was never used by Windlass: no job was stored there and no worker ran; "
            f"check the URL and the current folder ({os.getcwd()})",
            lasting=True,
        )


def require_current(database: Database) -> None:
    """Raise unless the schema is up to date."""
    missing = pending(database)
    if missing:
        raise MigrationRequiredError(
            f"{database.description}: the schema lacks {', '.join(m.name for m in missing)}; "
            "run `windlass migrate module:app` or call app.migrate()"
        )


class Readiness:
    """Ensures the schema before first use: SQLite's is created automatically, a server's must have been migrated."""

    def __init__(self, database: Database, when_opened: Callable[[], None] = lambda: None) -> None:
        self._database = database
        self._when_opened = when_opened
        self.is_ready = False
        self._begin()
        after_fork(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()

    def ensure(self) -> None:
        """Create or check the schema, once."""
        if self.is_ready:
            return
        with self._lock:
            if not self.is_ready:
                self._when_opened()
                (migrate if self._database.migrates_itself else require_current)(self._database)
                self.is_ready = True

    def reset(self) -> None:
        """Check again at the next use: the store was closed, and may be a different one by then."""
        self.is_ready = False


def make_current(dialect: Dialect) -> Plan[None]:
    """Bring the schema up to date within the current transaction."""
    for migration in migrations(dialect.name):
        yield from _apply(dialect, migration)


def installation(dialect: Dialect) -> Plan[tuple[Any, ...]]:
    """Return what identifies this database with our tables: SQLite's file, a server's database."""
    del dialect
    row = yield Step("installation", alone=True)
    return tuple(row)


def _applied(dialect: Dialect) -> Plan[dict[int, str]]:
    del dialect
    if (yield Step("has_migrations")) is None:
        return {}
    return dict((yield Step("applied_migrations")))


def _apply(dialect: Dialect, migration: Migration) -> Plan[bool]:
    """Apply one migration in one transaction; return False when another process was first."""
    yield Step("lock_migrations")
    yield Step("create_migration_table")
    if migration.version in (yield from _applied(dialect)):
        return False
    yield Step(SCRIPT, {"text": migration.script})
    row = {"version": migration.version, "name": migration.name, "checksum": migration.checksum}
    yield Step("insert_migration", row)
    return True
