"""A store, and workers that can be made to die, for every test of crashes that asks."""

from collections.abc import Iterator

import pytest

from tests.support.crashing import Stage, stage_on
from tests.support.programs import Programs


@pytest.fixture
def stage(store_url: str, programs: Programs) -> Iterator[Stage]:
    """An empty store of each kind in turn, with workers that can be made to die."""
    with stage_on(store_url, programs) as ready:
        yield ready
