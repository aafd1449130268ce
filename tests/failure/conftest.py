"""Applications on each store, for every test of this folder."""

from tests.engine.fixtures import apps, empty_postgres, migrated_postgres

__all__ = ["apps", "empty_postgres", "migrated_postgres"]
