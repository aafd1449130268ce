"""Durations as users write them."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.durations import MAX_SECONDS, seconds
from windlass.errors import InvalidOptionError


@given(st.one_of(st.integers(0, MAX_SECONDS), st.floats(0, MAX_SECONDS)))
def test_seconds_are_taken_as_they_are(value):
    taken = seconds(value, "delay")
    assert taken == value
    assert type(taken) is float


@given(st.timedeltas(timedelta(0), timedelta(seconds=MAX_SECONDS)))
def test_a_timedelta_is_its_seconds(value):
    assert seconds(value, "delay") == value.total_seconds()


@pytest.mark.parametrize("value", [-1, -0.001, float("nan"), float("-inf"), -(10**400), timedelta(microseconds=-1)])
def test_negatives_and_nan_are_refused_naming_the_option(value):
    with pytest.raises(InvalidOptionError, match=r"^timeout must not be negative"):
        seconds(value, "timeout")


@pytest.mark.parametrize("value", [float("inf"), 10**400, MAX_SECONDS + 1, timedelta.max])
def test_more_than_a_century_is_refused(value):
    with pytest.raises(InvalidOptionError, match=r"^delay must be at most 100 years"):
        seconds(value, "delay")


@pytest.mark.parametrize("value", [True, False, "5", None, Decimal(5), 1j, [5]])
def test_other_types_are_refused_naming_the_option_and_the_type(value):
    with pytest.raises(InvalidOptionError, match=rf"^delay must be a number.*\({type(value).__name__}\)"):
        seconds(value, "delay")
