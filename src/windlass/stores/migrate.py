"""Migrations: numbered SQL files per dialect, applied in order, each remembered with its checksum."""

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
    """All migrations a dialect ships, in order."""
    folder = resources.files("windlass.stores").joinpath(dialect).joinpath("migrations")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(Migration(int(file.name[:4]), file.name[:-4], file.read_text(encoding="utf-8")) for file in files)


def pending(database: Database) -> list[Migration]:
    """What is still to be applied. An applied file whose text differs from ours is an error."""
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
    """Bring the schema up to date; answers the names of what was applied. Two processes may call it at once."""
    return [migration.name for migration in pending(database) if database.run(_apply, migration)]


def require_used(database: Database) -> None:
    """Raise if nothing was ever stored there: for whoever only looks, and is to make neither a file nor a schema.

    A server without our tables is told by `require_current`.
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
    """Sees to the schema before first use: SQLite's is made by itself, a server's must have been migrated."""

    def __init__(self, database: Database, when_opened: Callable[[], None] = lambda: None) -> None:
        self._database = database
        self._when_opened = when_opened
        self.is_ready = False
        self._begin()
        after_fork(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()

    def ensure(self) -> None:
        """Make or check the schema, once."""
        if self.is_ready:
            return
        with self._lock:
            if not self.is_ready:
                self._when_opened()
                (migrate if self._database.migrates_itself else require_current)(self._database)
                self.is_ready = True

    def reset(self) -> None:
        """See to it again at the next use: the store was closed, and may be another by then."""
        self.is_ready = False


def make_current(dialect: Dialect) -> Plan[None]:
    """Bring the schema up to date in the transaction at hand, with which it stands or falls."""
    for migration in migrations(dialect.name):
        yield from _apply(dialect, migration)


def installation(dialect: Dialect) -> Plan[tuple[Any, ...]]:
    """What tells this database, with our tables in it, from others: SQLite's file, a server's database."""
    del dialect
    row = yield Step("installation", alone=True)
    return tuple(row)


def _applied(dialect: Dialect) -> Plan[dict[int, str]]:
    del dialect
    if (yield Step("has_migrations")) is None:
        return {}
    return dict((yield Step("applied_migrations")))


def _apply(dialect: Dialect, migration: Migration) -> Plan[bool]:
    """One migration in one transaction; False when another process was quicker."""
    yield Step("lock_migrations")
    yield Step("create_migration_table")
    if migration.version in (yield from _applied(dialect)):
        return False
    yield Step(SCRIPT, {"text": migration.script})
    row = {"version": migration.version, "name": migration.name, "checksum": migration.checksum}
    yield Step("insert_migration", row)
    return True
