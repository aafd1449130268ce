"""Migrations: applied once, in order, identified by their checksums."""

from __future__ import annotations

from functools import partial

import pytest

from windlass.domain.clock import VirtualClock
from windlass.errors import ConfigurationError, MigrationRequiredError
from windlass.stores import migrate
from windlass.stores.database import Database
from windlass.testing.contract.workbench import Workbench, at_once


class MigrationsContract:
    """How a schema is created; `empty_store` is a fixture of the subclass: a database without tables."""

    def test_an_empty_database_lacks_every_migration(self, empty_store: Database) -> None:
        """Operations: a server's schema is never made behind the operator's back, and the error says what to do."""
        ours = migrate.migrations(empty_store.dialect.name)
        assert tuple(migrate.pending(empty_store)) == ours
        with pytest.raises(MigrationRequiredError, match=f"lacks {ours[0].name}.*windlass migrate"):
            migrate.require_current(empty_store)

    def test_migrating_applies_each_migration_once_and_in_order(self, empty_store: Database) -> None:
        """Operations: the second run finds nothing to do."""
        names = [migration.name for migration in migrate.migrations(empty_store.dialect.name)]
        assert migrate.migrate(empty_store) == names == sorted(names)
        assert migrate.migrate(empty_store) == []
        assert migrate.pending(empty_store) == []
        migrate.require_current(empty_store)

    def test_threads_that_migrate_at_once_take_turns(self, empty_store: Database, clock: VirtualClock) -> None:
        """Operations: each migration is applied by exactly one of them."""
        names = [migration.name for migration in migrate.migrations(empty_store.dialect.name)]
        applied = at_once(*[partial(migrate.migrate, empty_store)] * 3)
        assert sorted(name for batch in applied for name in batch) == names
        assert Workbench(empty_store, clock).claimed_job().attempts == 0

    def test_a_migration_whose_text_was_edited_is_refused(self, empty_store: Database, clock: VirtualClock) -> None:
        """Operations: an applied file must never change; the error names it."""
        migrate.migrate(empty_store)
        bench = Workbench(empty_store, clock)
        bench.script("UPDATE windlass_migration SET checksum = 'edited' WHERE version = 1")
        for check in (migrate.pending, migrate.migrate, migrate.require_current):
            with pytest.raises(ConfigurationError, match=r"0001_initial was applied .* with another text"):
                check(empty_store)

    def test_a_migration_of_a_newer_release_is_accepted(self, empty_store: Database, clock: VirtualClock) -> None:
        """Operations: one release forwards compatible; an old worker runs on a schema that has moved on."""
        migrate.migrate(empty_store)
        bench = Workbench(empty_store, clock)
        bench.script("INSERT INTO windlass_migration VALUES (9999, '9999_future', 'x', 0)")
        migrate.require_current(empty_store)
        assert migrate.migrate(empty_store) == []
