"""Intervals of schedules."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass import InvalidOptionError, every
from windlass.domain.clock import MICROSECONDS
from windlass.domain.intervals import Every


@pytest.mark.parametrize(
    ("interval", "text", "explained"),
    [
        (every(hours=1), "every(hours=1)", "every hour"),
        (every(minutes=90), "every(hours=1, minutes=30)", "every hour and 30 minutes"),
        (every(days=1), "every(days=1)", "every day"),
        (every(weeks=2), "every(weeks=2)", "every 2 weeks"),
        (every(days=30), "every(days=30)", "every 30 days"),
        (every(days=7), "every(weeks=1)", "every week"),
        (every(seconds=1), "every(seconds=1)", "every second"),
        (every(hours=2, seconds=1), "every(hours=2, seconds=1)", "every 2 hours and 1 second"),
    ],
)
def test_an_interval_is_written_as_it_is_read(interval: Every, text: str, explained: str):
    """J9.1."""
    assert str(interval) == text
    assert Every.parse(text) == interval
    assert interval.explain() == explained


@given(st.integers(1, 10**9))
def test_every_interval_is_read_back_from_its_text(seconds: int):
    """J9.1."""
    assert Every.parse(str(every(seconds=seconds))) == every(seconds=seconds)


@given(st.integers(1, 10**7), st.integers(0, 2**50), st.integers(-(2**40), 2**55))
def test_ticks_are_the_anchor_and_whole_intervals_from_there(seconds: int, anchor: int, distance: int):
    """J9.1: the first one strictly behind the given instant."""
    interval = every(seconds=seconds)
    instant = anchor + distance
    tick = interval.next_after(instant, anchor)
    assert tick > instant
    assert tick >= anchor
    assert (tick - anchor) % (seconds * MICROSECONDS) == 0
    assert tick == anchor or tick - seconds * MICROSECONDS <= instant


@pytest.mark.parametrize(
    "wrong",
    [{}, {"hours": 0}, {"seconds": 0.5}, {"minutes": -1}, {"hours": True}, {"days": "1"}, {"weeks": 10**6}],
)
def test_an_interval_of_less_than_a_second_or_of_no_whole_numbers_is_refused(wrong: dict[str, Any]):
    """J9.1."""
    with pytest.raises(InvalidOptionError, match=r"every\(") as caught:
        every(**wrong)
    assert all(str(value) in str(caught.value) for value in wrong.values() if value)


@pytest.mark.parametrize(
    "text", ["every()", "every(1)", "every(hours=1", "every(hours=-1)", "every(months=1)", "every(hours=1, hours=2)", 3]
)
def test_an_invalid_interval_is_refused(text: str):
    """J9.1."""
    with pytest.raises(InvalidOptionError, match="expected an interval like"):
        Every.parse(text)
