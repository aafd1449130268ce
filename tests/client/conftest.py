"""Applications on each store, and callers with connections of their own, for every test of this folder."""

from collections.abc import Iterator

import pytest

from tests.client.callers import ASYNC, SYNC, Lending, make_orders
from tests.engine.apps import Apps
from tests.engine.fixtures import _nothing_seen, app, apps, empty_postgres, gate, migrated_postgres, shop

__all__ = ["_nothing_seen", "app", "apps", "empty_postgres", "gate", "migrated_postgres", "shop"]


def _lending(request: pytest.FixtureRequest) -> Iterator[Lending]:
    store, kind = request.param
    url = request.getfixturevalue({"sqlite": "sqlite_url", "postgres": "empty_postgres"}[store])
    made = Apps(url)
    made()
    make_orders(url)
    yield Lending(made, lambda: kind(url))
    made.close()


lending = pytest.fixture(params=SYNC, ids=[f"{store}-{kind.__name__}" for store, kind in SYNC])(_lending)
async_lending = pytest.fixture(params=ASYNC, ids=[f"{store}-{kind.__name__}" for store, kind in ASYNC])(_lending)
