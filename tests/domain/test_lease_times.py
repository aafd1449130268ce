"""The heartbeat's interval and lease."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.lease_times import heartbeat_interval, lease_for
from windlass.errors import InvalidOptionError

bases = st.floats(0.01, 1000)
loads = st.floats(0, 1)
nodes = st.integers(1, 10_000)
latencies = st.floats(0, 60)


@pytest.mark.parametrize(
    ("utilisation", "live_nodes", "latency", "interval"),
    [
        (0.0, 1, 0.001, 5),
        (0.0, 10, 0.049, 5),
        (0.5, 3, 0.001, 3.75),
        (1.0, 1, 0.001, 2.5),
        (0.0, 40, 0.001, 10),
        (0.0, 1000, 0.001, 10),
        (0.0, 1, 0.2, 10),
        (0.0, 1, 30, 10),
        (1.0, 40, 0.2, 10),
        (1.0, 40, 0.001, 5),
    ],
)
def test_the_interval_by_load(utilisation, live_nodes, latency, interval):
    """J7.2: a pure function of utilisation, live nodes and store latency."""
    assert heartbeat_interval(5, utilisation, live_nodes, latency) == pytest.approx(interval)


@given(bases, loads, nodes, latencies)
def test_the_interval_stays_between_half_and_twice_the_base(base, utilisation, live_nodes, latency):
    """J7.2: within 0.5-2 x base."""
    assert 0.5 * base <= heartbeat_interval(base, utilisation, live_nodes, latency) <= 2 * base


@given(bases, loads, st.integers(1, 10), st.floats(0, 0.05))
def test_a_small_cluster_on_a_quick_store_never_waits_longer_than_the_base(base, utilisation, live_nodes, latency):
    """J7.2: the base is what a user of a small cluster gets."""
    assert heartbeat_interval(base, utilisation, live_nodes, latency) <= base
    assert heartbeat_interval(base, 0.0, live_nodes, latency) == base


@given(bases, loads, loads, nodes, latencies)
def test_a_busier_node_never_beats_less_often(base, one, other, live_nodes, latency):
    """J7.2: it has more to lose."""
    less, more = sorted((one, other))
    assert heartbeat_interval(base, more, live_nodes, latency) <= heartbeat_interval(base, less, live_nodes, latency)


@given(bases, loads, nodes, nodes, latencies)
def test_more_nodes_never_shorten_it(base, utilisation, one, other, latency):
    """J7.2: the store's load from heartbeats is bounded."""
    few, many = sorted((one, other))
    assert heartbeat_interval(base, utilisation, few, latency) <= heartbeat_interval(base, utilisation, many, latency)


@given(bases, loads, nodes, latencies, latencies)
def test_a_slower_store_never_shortens_it(base, utilisation, live_nodes, one, other):
    """J7.2: a slow store is not asked more often."""
    quick, slow = sorted((one, other))
    assert heartbeat_interval(base, utilisation, live_nodes, quick) <= heartbeat_interval(
        base, utilisation, live_nodes, slow
    )


@given(bases, bases, loads, nodes, latencies)
def test_a_longer_base_never_shortens_it(one, other, utilisation, live_nodes, latency):
    low, high = sorted((one, other))
    assert heartbeat_interval(low, utilisation, live_nodes, latency) <= heartbeat_interval(
        high, utilisation, live_nodes, latency
    )


@pytest.mark.parametrize("base", [0, -1, float("nan")])
def test_a_base_that_is_no_time_is_refused(base):
    with pytest.raises(InvalidOptionError, match="heartbeat_interval must be more than 0"):
        heartbeat_interval(base, 0, 1, 0)


def test_a_lease_lasts_three_promised_intervals():
    """J7.2: lease_until = now + 3 x the interval it promises."""
    assert lease_for(5) == 15
    assert lease_for(2.5, missed=4) == 10


@pytest.mark.parametrize("missed", [0, -1])
def test_a_lease_covers_at_least_one_beat(missed):
    with pytest.raises(InvalidOptionError, match="at least 1"):
        lease_for(5, missed)
