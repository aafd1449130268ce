"""A node gives up others only while it can trust its own picture of time."""

from collections.abc import Callable, Iterator
from math import ceil

import pytest

from windlass.domain.clock import SystemClock, monotonic, wall_nanos
from windlass.maintenance import heartbeat
from windlass.maintenance.heartbeat import Heartbeat, NodeLoad
from windlass.runtime.error_handling import ErrorHandling
from windlass.settings import NodeSettings
from windlass.stores import migrate
from windlass.stores.database import Database
from windlass.stores.node_identity import NodeIdentity
from windlass.stores.open import open_database

Ahead = Callable[[float], None]


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    opened = open_database(sqlite_url, SystemClock())
    migrate.migrate(opened)
    yield opened
    opened.close()


@pytest.fixture
def beating(database: Database) -> Heartbeat:
    """A node that has been entered, and has a lease of 15 s."""
    made = Heartbeat(
        database,
        NodeIdentity(None),
        NodeSettings(),
        lambda: NodeLoad(0, 0.0),
        lambda: None,
        lambda: None,
        ErrorHandling(),
    )
    made.register()
    return made


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Ahead:
    """Set the system's clock, as this node sees it, by so many seconds."""
    return lambda seconds: monkeypatch.setattr(heartbeat, "wall_nanos", lambda: wall_nanos() + int(seconds * 1e9))


@pytest.mark.parametrize("seconds", [1.0, 14.0, 3600.0])
def test_a_clock_set_forward_is_a_gap_in_all_leases_however_small(beating: Heartbeat, set_clock: Ahead, seconds: float):
    """J7.2: it has shortened the leases of nodes that live; they get time for a heartbeat first."""
    assert beating.steady_for() > 0
    set_clock(seconds)
    assert beating.steady_for() == 0
    beating.tick()
    assert 0 < beating.steady_for() < 10  # it counts anew from this beat on


@pytest.mark.parametrize("seconds", [-3600.0, -1.0, 0.01])
def test_a_clock_set_back_or_adjusted_slightly_makes_no_gap(beating: Heartbeat, set_clock: Ahead, seconds: float):
    """J7.2: it has made leases longer, if anything."""
    set_clock(seconds)
    assert beating.steady_for() > 0


def test_a_node_that_missed_heartbeats_marks_no_other_as_lost_though_its_lease_held(
    beating: Heartbeat, monkeypatch: pytest.MonkeyPatch
):
    """J7.2, J7.8: leases differ by load; an outage longer than only another node's lease proves nothing."""
    now = [float(ceil(monotonic()))]  # whole seconds: sums and differences are exact
    monkeypatch.setattr(heartbeat, "monotonic", lambda: now[0])
    monkeypatch.setattr(heartbeat, "wall_nanos", lambda: int(now[0] * 1e9))
    beating.tick()
    now[0] += 5
    beating.tick()
    steady = beating.steady_for()
    assert steady >= 5
    now[0] += 9  # the store did not answer, and does now: the lease of 15 s still holds
    assert beating.steady_for() == 0
    beating.tick()
    assert beating.steady_for() == 0
    now[0] += 5
    beating.tick()
    assert beating.steady_for() == 5
