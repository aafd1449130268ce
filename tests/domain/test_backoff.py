"""Retry delays."""

import dataclasses
import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.backoff import MAX_DELAY_MS, Backoff
from windlass.errors import InvalidOptionError, SerializationError

DAY = timedelta(hours=24)

bases = st.one_of(st.integers(0, 10**6), st.floats(0, 10**6))
jitters = st.floats(0, 1)
chances = st.floats(0, 1, exclude_max=True)
attempts = st.integers(1, 10_000)
backoffs = st.one_of(
    st.just(Backoff.none()), bases.map(Backoff.fixed), st.builds(Backoff.exponential, bases, jitter=jitters)
)


def delays(backoff, count):
    return [backoff.delay(attempt).total_seconds() for attempt in range(1, count + 1)]


class TestTablesOfTheSeed:
    """The seed counts the attempt that follows: its attempt 2 comes after failure number 1."""

    def test_none_retries_at_once(self):
        """J5.2: NONE is 0."""
        assert delays(Backoff.none(), 4) == [0, 0, 0, 0]

    def test_fixed_ten_seconds(self):
        """J5.2: FIXED is the base, every time."""
        assert delays(Backoff.fixed(10), 3) == [10, 10, 10]

    def test_exponential_from_one_second(self):
        """J5.2: base * 2^(attempt-1), with the cumulative waits of the seed."""
        waits = delays(Backoff.exponential(1), 4)
        assert waits == [1, 2, 4, 8]
        assert [sum(waits[:count]) for count in range(5)] == [0, 1, 3, 7, 15]

    @pytest.mark.parametrize(
        ("attempt", "expected"),
        [
            (10, timedelta(seconds=512)),  # about 8.5 minutes
            (15, timedelta(seconds=16_384)),  # about 4.5 hours
            (17, timedelta(seconds=65_536)),  # the last one below a day
            (18, DAY),
            (20, DAY),
            (21, DAY),
            (10_000, DAY),
        ],
    )
    def test_exponential_is_capped_at_a_day(self, attempt, expected):
        """J5.2: 24 h cap."""
        assert Backoff.exponential(1).delay(attempt) == expected

    def test_the_exponent_is_capped_at_twenty(self):
        """J5.2: a base so small that the day is never reached shows the cap of the exponent."""
        small = Backoff.exponential(0.001)
        assert small.delay(20) == timedelta(milliseconds=2**19)
        assert small.delay(21) == small.delay(22) == small.delay(500) == timedelta(milliseconds=2**20)


@given(backoffs, attempts, chances)
def test_every_delay_is_whole_milliseconds_and_not_negative(backoff, attempt, chance):
    """J5.2: integer milliseconds."""
    delay = backoff.delay(attempt, lambda: chance)
    assert delay >= timedelta(0)
    assert delay % timedelta(milliseconds=1) == timedelta(0)


@given(bases, attempts)
def test_fixed_is_taken_as_given_also_beyond_a_day(base, attempt):
    """J5.2: FIXED delays are taken as given."""
    assert Backoff.fixed(base).delay(attempt) == timedelta(milliseconds=round(base * 1000))


@given(bases, attempts)
def test_exponential_grows_with_the_attempt_and_doubles_below_its_caps(base, attempt):
    """J5.2: doubling, never shrinking."""
    backoff = Backoff.exponential(base)
    now, then = backoff.delay(attempt), backoff.delay(attempt + 1)
    assert now <= then <= DAY
    if attempt <= 20 and then < DAY:
        assert then == 2 * now


@given(bases, jitters, attempts, chances)
def test_jitter_takes_away_at_most_its_fraction_and_adds_nothing(base, jitter, attempt, chance):
    """J5.2: the 24 h cap also holds over jitter; 1.0 is full jitter."""
    plain = Backoff.exponential(base).delay(attempt)
    jittered = Backoff.exponential(base, jitter=jitter).delay(attempt, lambda: chance)
    assert jittered <= plain <= timedelta(milliseconds=MAX_DELAY_MS)
    assert jittered >= plain * (1 - jitter) - timedelta(milliseconds=1)


def test_full_jitter_reaches_from_nothing_to_the_whole_delay():
    full = Backoff.exponential(10, jitter=1.0)
    assert full.delay(1, lambda: 0.0) == timedelta(seconds=10)
    assert full.delay(1, lambda: 0.5) == timedelta(seconds=5)
    assert full.delay(1, lambda: 1.0) == timedelta(0)


def test_jitter_has_its_own_chance_when_none_is_given():
    backoff = Backoff.exponential(1000, jitter=0.5)
    seen = {backoff.delay(1) for _ in range(50)}
    assert len(seen) > 1
    assert all(timedelta(seconds=500) <= delay <= timedelta(seconds=1000) for delay in seen)


def test_a_base_may_be_a_timedelta():
    assert Backoff.fixed(timedelta(minutes=1)) == Backoff.fixed(60)
    assert Backoff.exponential(timedelta(minutes=1)) == Backoff.exponential(60)


@given(backoffs)
def test_the_stored_form_is_json_and_gives_the_same_back(backoff):
    stored = json.loads(json.dumps(backoff.to_json()))
    assert Backoff.from_json(stored) == backoff


def test_the_stored_form_is_fixed():
    """Written by one version and read by the next: a change here needs a migration."""
    assert Backoff.none().to_json() is None
    assert Backoff.fixed(1.5).to_json() == ["fixed", 1500]
    assert Backoff.exponential(1, jitter=0.25).to_json() == ["exponential", 1000, 0.25]


@pytest.mark.parametrize(
    "stored", [[], ["fixed"], ["fixed", "1"], ["fixed", -1], ["linear", 5], ["exponential", 1, 2], "fixed", {}]
)
def test_an_unreadable_stored_form_is_an_error_that_shows_it(stored):
    with pytest.raises(SerializationError, match="stored backoff must be"):
        Backoff.from_json(stored)


@pytest.mark.parametrize("base", [-1, float("nan"), True, "1", None])
def test_a_bad_base_is_refused_where_it_is_written(base):
    with pytest.raises(InvalidOptionError, match="backoff base"):
        Backoff.fixed(base)
    with pytest.raises(InvalidOptionError, match="backoff base"):
        Backoff.exponential(base)


@pytest.mark.parametrize("jitter", [-0.1, 1.1, 20, float("nan"), True, "0.2", None])
def test_a_bad_jitter_is_refused_where_it_is_written(jitter):
    with pytest.raises(InvalidOptionError, match=r"fraction from 0\.0 to 1\.0"):
        Backoff.exponential(1, jitter=jitter)


@pytest.mark.parametrize("attempt", [0, -1])
def test_attempts_count_from_one(attempt):
    with pytest.raises(InvalidOptionError, match="counts from 1"):
        Backoff.exponential(1).delay(attempt)


def test_a_backoff_is_a_value():
    assert Backoff.exponential(1) == Backoff.exponential(1.0)
    assert len({Backoff.none(), Backoff.none(), Backoff.fixed(1)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Backoff.none().base_ms = 5  # type: ignore[misc]
