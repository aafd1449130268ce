"""Applications on a new store, with a clock that tests move."""

from collections.abc import Iterator

import pytest

from tests.engine.fixtures import _nothing_seen, gate
from tests.maintenance.moving import Moving

__all__ = ["_nothing_seen", "gate"]


@pytest.fixture
def moving(store_url: str) -> Iterator[Moving]:
    """Makes applications by one clock, and closes them."""
    made = Moving(store_url)
    yield made
    made.close()
