"""The timer wheel."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from windlass.domain.timer import Deadlines
from windlass.errors import InvalidOptionError

times = st.floats(-1e6, 1e6)
grains = st.floats(0.001, 10)


def test_a_deadline_fires_once_within_the_granularity():
    deadlines = Deadlines[str]()
    deadlines.arm("a", 10.01)
    assert deadlines.expired(10.0) == []
    assert deadlines.expired(10.06) == ["a"]
    assert deadlines.expired(11.0) == []


def test_an_earlier_deadline_fires_first():
    deadlines = Deadlines[str]()
    for token, at in [("late", 3.0), ("early", 1.0), ("middle", 2.0)]:
        deadlines.arm(token, at)
    assert deadlines.expired(10.0) == ["early", "middle", "late"]


def test_arming_again_moves_the_deadline():
    deadlines = Deadlines[str]()
    deadlines.arm("a", 1.0)
    deadlines.arm("a", 5.0)
    assert len(deadlines) == 1
    assert deadlines.expired(2.0) == []
    assert deadlines.expired(5.1) == ["a"]


def test_disarming_returns_whether_a_timer_was_armed():
    deadlines = Deadlines[str]()
    deadlines.arm("a", 1.0)
    assert "a" in deadlines
    assert deadlines.disarm("a") is True
    assert deadlines.disarm("a") is False
    assert "a" not in deadlines
    assert deadlines.expired(9.0) == []
    assert deadlines.next_at() is None


def test_a_deadline_in_the_past_fires_at_once():
    deadlines = Deadlines[str]()
    deadlines.arm("a", 1.0)
    assert deadlines.expired(100.0) == ["a"]


@given(times, grains)
@example(math.nextafter(570 * 0.84, math.inf), 0.84)  # its product with 1 / 0.84 is rounded down to 570
def test_the_next_time_is_never_early_and_at_most_one_granularity_late(at, grain):
    """A timeout does not cut a job short."""
    deadlines = Deadlines[str](grain)
    deadlines.arm("a", at)
    next_at = deadlines.next_at()
    assert next_at is not None
    assert at <= next_at <= at + grain * (1 + 1e-6) + abs(at) * 1e-12


@given(st.lists(times, min_size=1, max_size=30), grains)
def test_waking_at_the_next_time_always_finds_something_due(ats, grain):
    deadlines = Deadlines[int](grain)
    for token, at in enumerate(ats):
        deadlines.arm(token, at)
    fired = []
    while (next_at := deadlines.next_at()) is not None:
        batch = deadlines.expired(next_at)
        assert batch
        assert all(ats[token] <= next_at for token in batch)
        fired.extend(batch)
    assert sorted(fired) == list(range(len(ats)))


def test_a_disarmed_timer_uses_no_memory():
    """Also of buckets: lone jobs arm and disarm millions of them, half an hour ahead."""
    deadlines = Deadlines[int]()
    deadlines.arm(-1, 1e9)
    for token in range(20_000):
        deadlines.arm(token, 1800 + token * 0.05)
        deadlines.disarm(token)
    assert len(deadlines) == len(deadlines._buckets) == len(deadlines._bucket_of) == 1
    assert len(deadlines._heap) < 100
    for token in range(20_000):
        deadlines.arm(token, 1800 + token * 0.05)
    for token in range(20_000):
        deadlines.disarm(token)
    assert len(deadlines._heap) < 100
    assert deadlines.next_at() == pytest.approx(1e9)


@pytest.mark.parametrize("granularity", [0, -0.05, float("nan")])
def test_a_bad_granularity_is_refused(granularity):
    with pytest.raises(InvalidOptionError, match="granularity must be more than 0"):
        Deadlines(granularity)


class AgainstPlainDictionary(RuleBasedStateMachine):
    """Any mix of calls behaves as a dictionary of exact times, but for the granularity."""

    def __init__(self) -> None:
        super().__init__()
        self.deadlines = Deadlines[int](0.05)
        self.exact: dict[int, float] = {}
        self.now = 0.0

    @rule(token=st.integers(0, 8), ahead=st.floats(-1, 5))
    def arm(self, token, ahead):
        self.deadlines.arm(token, self.now + ahead)
        self.exact[token] = self.now + ahead

    @rule(token=st.integers(0, 8))
    def disarm(self, token):
        assert self.deadlines.disarm(token) == (self.exact.pop(token, None) is not None)

    @rule(step=st.floats(0, 3))
    def pass_time(self, step):
        self.now += step
        for token in self.deadlines.expired(self.now):
            assert self.exact.pop(token) <= self.now
        assert all(at > self.now - 0.0501 for at in self.exact.values())

    @invariant()
    def holds_the_same_tokens(self):
        assert len(self.deadlines) == len(self.exact)
        assert all(token in self.deadlines for token in self.exact)
        assert (self.deadlines.next_at() is None) == (not self.exact)


TestAgainstPlainDictionary = AgainstPlainDictionary.TestCase
