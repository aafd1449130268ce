"""A program under test, on a store of the test's own."""

from collections.abc import Iterator

import pytest

from tests.testing import kit_shop
from windlass import Windlass
from windlass.testing import isolated


@pytest.fixture
def shop() -> Iterator[Windlass]:
    """The application of `kit_shop`, isolated."""
    kit_shop.seen.clear()
    with isolated(kit_shop.app) as app:
        yield app
