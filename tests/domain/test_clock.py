"""Clocks and the stored form of time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.clock import SystemClock, VirtualClock, from_micros, micros, monotonic, wall_nanos
from windlass.errors import InvalidOptionError

zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones)  # noqa: DTZ001 - bounds are naive


def test_the_epoch_is_zero():
    assert micros(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert from_micros(0) == datetime(1970, 1, 1, tzinfo=UTC)


@given(moments)
def test_a_datetime_survives_the_stored_form_to_the_microsecond(moment):
    back = from_micros(micros(moment))
    assert back == moment
    assert back.tzinfo is UTC


@given(st.integers(micros(datetime.min.replace(tzinfo=UTC)), micros(datetime.max.replace(tzinfo=UTC))))
def test_every_stored_time_survives_the_shown_form(stored):
    assert micros(from_micros(stored)) == stored


@given(moments, moments)
def test_stored_times_are_ordered_as_the_moments_are(one, other):
    assert (micros(one) < micros(other)) == (one < other)


def test_a_naive_datetime_is_refused_with_a_hint():
    with pytest.raises(InvalidOptionError, match=r"tzinfo=datetime\.UTC"):
        micros(datetime(2030, 1, 1))  # noqa: DTZ001 - the point


def test_the_system_clock_is_aware_and_agrees_with_itself():
    clock = SystemClock()
    before, now, after = clock.micros(), clock.now(), clock.micros()
    assert now.tzinfo is UTC
    assert before <= micros(now) <= after + 1
    assert abs(wall_nanos() // 1000 - after) < 10_000_000


def test_monotonic_does_not_go_back():
    assert monotonic() <= monotonic()


class TestVirtualClock:
    def test_stops_until_advanced(self):
        start = datetime(2031, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
        clock = VirtualClock(start)
        assert clock.now() == clock.now() == start
        assert clock.now().tzinfo is UTC
        assert clock.micros() == micros(start)

    @given(st.lists(st.integers(0, 10**12)))
    def test_advances_by_exactly_the_given_duration(self, steps):
        clock = VirtualClock()
        start = clock.micros()
        for step in steps:
            clock.advance(timedelta(microseconds=step))
        assert clock.micros() - start == sum(steps)

    def test_takes_seconds_and_their_fractions(self):
        clock = VirtualClock()
        start = clock.now()
        clock.advance(0.5)
        clock.advance(60)
        assert clock.now() - start == timedelta(seconds=60.5)

    def test_can_be_set_back_but_not_advanced_back(self):
        clock = VirtualClock()
        past = datetime(2001, 1, 1, tzinfo=UTC)
        clock.set(past)
        assert clock.now() == past
        with pytest.raises(InvalidOptionError, match="use set"):
            clock.advance(-1)

    def test_refuses_a_naive_start(self):
        with pytest.raises(InvalidOptionError, match="naive"):
            VirtualClock(datetime(2030, 1, 1))  # noqa: DTZ001 - the point
