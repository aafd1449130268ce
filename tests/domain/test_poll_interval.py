"""Adaptive polling."""

import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windlass.domain.poll_interval import AdaptivePolling, PollObservation
from windlass.errors import InvalidOptionError

FULL, SOME, EMPTY = (50, 50), (50, 7), (50, 0)

polls = st.integers(0, 100).flatmap(lambda asked: st.tuples(st.just(asked), st.integers(0, asked)))
observations = st.builds(
    PollObservation,
    recent=st.lists(polls, max_size=12).map(tuple),
    idle_for=st.floats(0, 1e6),
    utilisation=st.floats(0, 1),
    woken=st.booleans(),
)
positive = st.floats(0.001, 1e4)
strategies = st.builds(
    lambda burst, low, high, deep, after: AdaptivePolling(
        burst_delay=burst,
        min_delay=min(low, high),
        max_delay=max(low, high),
        deep_idle_delay=deep,
        deep_idle_after=after,
    ),
    *[positive] * 5,
)


def after(*recent, idle_for=0.0, utilisation=0.5, woken=False):
    observation = PollObservation(recent=recent, idle_for=idle_for, utilisation=utilisation, woken=woken)
    return AdaptivePolling().next_delay(observation)


def test_the_defaults_are_those_of_the_specification():
    """J3.5: burst 500 ms; normal 2-30 s; deep idle 60 s after 5 min."""
    assert dataclasses.asdict(AdaptivePolling()) == {
        "burst_delay": 0.5,
        "min_delay": 2.0,
        "max_delay": 30.0,
        "deep_idle_delay": 60.0,
        "deep_idle_after": 300.0,
    }


@pytest.mark.parametrize(
    ("recent", "delay"),
    [
        ((), 2),
        ((SOME,), 2),
        ((EMPTY,), 2),
        ((EMPTY, EMPTY), 4),
        ((EMPTY, EMPTY, EMPTY), 8),
        ((EMPTY,) * 4, 16),
        ((EMPTY,) * 5, 30),
        ((EMPTY,) * 10, 30),
        ((EMPTY,) * 4 + (SOME,), 2),
        ((SOME, EMPTY, EMPTY), 4),
        ((EMPTY, EMPTY, (0, 0)), 4),  # a poll that could ask for nothing says nothing
        ((FULL,), 2),
        ((FULL, FULL), 2),
        ((FULL, FULL, FULL), 0.5),
        ((EMPTY, FULL, FULL, FULL), 0.5),
        ((FULL, FULL, FULL, SOME), 2),
        ((FULL, SOME, FULL, FULL), 2),
        ((FULL,) * 10, 0.5),
    ],
)
def test_the_window_of_polls_decides_at_half_load(recent, delay):
    """J3.5: three full batches in a row -> delay/4; empty polls back off exponentially."""
    assert after(*recent) == delay


@pytest.mark.parametrize(
    ("utilisation", "delay"), [(0.0, 4), (0.25, 8 / 2**0.5), (0.5, 8), (0.75, 8 * 2**0.5), (1.0, 16)]
)
def test_high_load_slows_and_low_load_quickens(utilisation, delay):
    """J3.5: high utilisation slows, low utilisation quickens."""
    assert after(EMPTY, EMPTY, EMPTY, utilisation=utilisation) == pytest.approx(delay)


@pytest.mark.parametrize(("idle_for", "delay"), [(0, 30), (299.9, 30), (300, 60), (1e6, 60)])
def test_five_minutes_without_a_job_are_deep_idle(idle_for, delay):
    """J3.5: deep idle 60 s after 5 min without a job."""
    assert after(*[EMPTY] * 10, idle_for=idle_for) == delay


def test_a_wakeup_ends_deep_idle_with_a_burst():
    """J3.5: burst after a wakeup."""
    assert after(*[EMPTY] * 10, idle_for=1e6, woken=True) == 0.5


def test_an_idle_node_still_reaches_the_longest_normal_delay():
    """J3.5: normal 2-30 s, whatever the load."""
    assert after(*[EMPTY] * 10, utilisation=0.0) == 30
    assert after(SOME, utilisation=0.0) == 2


@given(strategies, observations)
def test_a_wakeup_always_gives_the_burst_delay(strategy, observation):
    """J3.5: burst after a wakeup."""
    assert strategy.next_delay(dataclasses.replace(observation, woken=True)) == strategy.burst_delay


@given(strategies, observations)
def test_the_delay_stays_within_the_settings(strategy, observation):
    """J3.5: all numbers are settings, and nothing outside them comes out."""
    numbers = (strategy.burst_delay, strategy.min_delay, strategy.max_delay, strategy.deep_idle_delay)
    assert min(numbers) <= strategy.next_delay(observation) <= max(numbers)


@given(observations)
def test_three_full_batches_divide_the_delay_by_four(observation):
    """J3.5: against the same observation with a batch that was one short."""
    quiet = dataclasses.replace(observation, idle_for=0.0, woken=False)
    full = dataclasses.replace(quiet, recent=(*quiet.recent, FULL, FULL, FULL))
    short = dataclasses.replace(quiet, recent=(*quiet.recent, FULL, FULL, (50, 49)))
    strategy = AdaptivePolling()
    assert strategy.next_delay(full) == strategy.next_delay(short) / 4


@given(observations, st.floats(0, 1))
def test_more_load_never_polls_sooner(observation, more):
    """J3.5: high utilisation slows."""
    busier = dataclasses.replace(observation, utilisation=max(observation.utilisation, more))
    assert AdaptivePolling().next_delay(busier) >= AdaptivePolling().next_delay(observation)


@given(observations)
def test_another_empty_poll_never_shortens_the_delay(observation):
    """J3.5: empty polls back off."""
    quiet = dataclasses.replace(observation, woken=False)
    emptier = dataclasses.replace(quiet, recent=(*quiet.recent, EMPTY))
    assert AdaptivePolling().next_delay(emptier) >= AdaptivePolling().next_delay(quiet)


@given(st.lists(polls, max_size=5), st.lists(polls, min_size=10, max_size=10))
@example([EMPTY], [EMPTY] * 10)
def test_polls_before_the_last_ten_do_not_count(older, ten):
    """J3.5: rolling window of 10 polls."""
    patient = AdaptivePolling(max_delay=1e9)  # so that an eleventh empty poll would show
    with_older = patient.next_delay(PollObservation(recent=(*older, *ten)))
    assert with_older == patient.next_delay(PollObservation(recent=tuple(ten)))


@pytest.mark.parametrize("name", [option.name for option in dataclasses.fields(AdaptivePolling)])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_settings_must_be_positive(name, value):
    with pytest.raises(InvalidOptionError, match=rf"poller\.{name} must be more than 0"):
        AdaptivePolling(**{name: value})


def test_min_must_not_exceed_max():
    with pytest.raises(InvalidOptionError, match=r"min_delay must not exceed poller\.max_delay, got 31 and 30"):
        AdaptivePolling(min_delay=31)
