"""When a duty is due."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.clock import MICROSECONDS, micros
from windlass.domain.cron import Cron
from windlass.domain.rhythm import AtTimes, Every

NIGHTLY = AtTimes(Cron.parse("0 2 * * *"))


def at(day: int, hour: int) -> int:
    return micros(datetime(2026, 11, day, hour, tzinfo=UTC))


def hours(count: int) -> int:
    return count * 3600 * MICROSECONDS


@pytest.mark.parametrize(
    ("passed_at", "now", "wait"),
    [
        (None, at(16, 1), hours(1)),  # first seen at 01:00: not before its time
        (None, at(16, 3), -hours(1)),
        (at(15, 3), at(16, 1), hours(1)),
        (at(16, 2), at(16, 2), hours(24)),
        (at(10, 2), at(16, 1), at(11, 2) - at(16, 1)),  # a night missed is made up for
        (at(20, 2), at(16, 1), hours(1)),  # passed in the future: the clock was set back
    ],
)
def test_a_nightly_duty_waits_for_the_first_time_behind_its_last_pass(passed_at: int | None, now: int, wait: int):
    """J5.6, J7.5."""
    assert NIGHTLY.wait(now, at(16, 1), passed_at) == wait


def test_a_duty_whose_years_are_over_is_looked_at_once_a_day():
    """J7.5: an expression may name years."""
    once = AtTimes(Cron.parse("0 0 2 1 1 ? 2026"))
    assert once.wait(at(16, 1), at(16, 1), None) == hours(24)


def test_a_regular_duty_begins_at_once():
    """J7.5."""
    assert Every(10).wait(at(16, 1), at(16, 1), None) <= 0


@given(st.floats(0.001, 1e6), st.integers(0, 2**50), st.integers(0, 2**50))
def test_a_regular_duty_is_due_its_interval_after_its_last_pass(seconds: float, passed_at: int, later: int):
    """J7.5: and never waits longer than its interval, whatever clocks do."""
    interval = int(seconds * MICROSECONDS)
    assert Every(seconds).wait(passed_at + later, 0, passed_at) == interval - later
    assert Every(seconds).wait(passed_at - 1, 0, passed_at) <= interval
