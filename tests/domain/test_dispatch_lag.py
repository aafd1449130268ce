"""Dispatch lag in buckets."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.dispatch_lag import MOST_US, WINDOW, RecentLags, added, bucket_of, longest_of, quantile

lags = st.integers(0, MOST_US) | st.integers(0, 10_000)


@given(lags)
def test_a_bucket_holds_its_lag_and_nothing_much_shorter(lag: int):
    """P10.1: by no more than a quarter."""
    longest = longest_of(bucket_of(lag))
    assert lag <= longest <= lag + lag // 4
    assert bucket_of(longest) == bucket_of(lag)
    if longest < MOST_US:
        assert bucket_of(longest + 1) == bucket_of(lag) + 1


@given(st.lists(lags, min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_that_of_the_lags(given_lags: list[int], share: float):
    """P10.1: never below it, and at most a quarter above."""
    recent = RecentLags(0.0)
    recent.count(given_lags, 1.0)
    found = quantile(recent.counts(2.0), share)
    assert found is not None
    within = sum(lag <= found * 1_000_000 + 0.5 for lag in given_lags)
    assert within >= share * len(given_lags) - 1e-9 * len(given_lags)
    below = sum(lag < found * 1_000_000 * 0.79 for lag in given_lags)
    assert below < share * len(given_lags) or found == 0


@given(st.lists(lags), st.lists(lags))
def test_counts_of_nodes_add_up(one: list[int], other: list[int]):
    """P10.1."""
    both, apart = RecentLags(0.0), [RecentLags(0.0), RecentLags(0.0)]
    both.count([*one, *other], 0.0)
    for recent, counted in zip(apart, (one, other), strict=True):
        recent.count(counted, 0.0)
    assert added(recent.counts(0.0) for recent in apart) == both.counts(0.0)


def test_counts_are_dropped_after_two_windows():
    """P10.1: what happened an hour ago says nothing about now."""
    recent = RecentLags(0.0)
    recent.count([1], 1.0)
    recent.count([2], WINDOW + 1)
    assert recent.counts(WINDOW + 2) == {1: 1, 2: 1}
    assert recent.counts(2 * WINDOW + 2) == {2: 1}
    assert recent.counts(4 * WINDOW + 2) == {}
    assert quantile({}, 0.5) is None


def test_a_lag_out_of_bounds_is_counted_as_the_nearest():
    """P10.1: clocks that were set must not break a claim."""
    assert (bucket_of(-5), bucket_of(1 << 70)) == (bucket_of(0), bucket_of(MOST_US))
