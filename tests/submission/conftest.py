"""Applications on each store, for every test of this folder."""

from tests.engine.fixtures import _nothing_seen, app, apps, empty_postgres, gate, migrated_postgres, shop

__all__ = ["_nothing_seen", "app", "apps", "empty_postgres", "gate", "migrated_postgres", "shop"]
