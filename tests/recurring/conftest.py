"""Applications on each store by a clock that stands still, with the jobs of `recurring_bodies`."""

from collections.abc import Iterator

import pytest

from tests.engine.apps import Apps
from tests.engine.fixtures import _nothing_seen, apps, empty_postgres, gate, migrated_postgres
from tests.recurring import recurring_bodies
from windlass import Windlass
from windlass.domain.clock import VirtualClock

__all__ = ["_nothing_seen", "apps", "empty_postgres", "gate", "migrated_postgres"]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(apps: Apps, clock: VirtualClock) -> Windlass:
    return apps(clock=clock)


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    yield
    recurring_bodies.RAN.clear()
