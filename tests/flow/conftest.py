"""Applications on each store by a clock that stands still, with the jobs of `flow_bodies`."""

from collections.abc import Iterator

import pytest

from tests.engine.apps import Apps
from tests.engine.fixtures import _nothing_seen, apps, empty_postgres, gate, migrated_postgres
from tests.flow import flow_bodies
from tests.flow.flow_bodies import Jobs
from windlass import Windlass
from windlass.domain.clock import VirtualClock

__all__ = ["_nothing_seen", "apps", "empty_postgres", "gate", "migrated_postgres"]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(apps: Apps, clock: VirtualClock) -> Windlass:
    return apps(clock=clock)


@pytest.fixture
def jobs(app: Windlass) -> Jobs:
    return Jobs(app)


@pytest.fixture(autouse=True)
def _nothing_broken() -> Iterator[None]:
    yield
    flow_bodies.BROKEN.clear()
    flow_bodies.FLAKY.clear()
    flow_bodies.LOADS.clear()
    flow_bodies.RAN.clear()
