from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass import DoNotRetry, RetryAfter, do_not_retry
from windlass.domain.delivery_outcomes import (
    AT_ONCE,
    FIRST_DELAY,
    LONGEST_ASKED,
    LONGEST_DELAY,
    MOST_FAILURES,
    SPREAD,
    DeliveryFailure,
    DestinationHealth,
    backoff,
    delay_of,
    failure_of,
)


@do_not_retry("gone")
class GoneError(Exception):
    pass


def test_the_class_of_an_error_decides_whether_a_delivery_is_refused_permanently():
    """P7.1."""
    assert failure_of(DoNotRetry("no")).final
    assert failure_of(GoneError()).final
    assert not failure_of(ValueError("no")).final
    behind = RuntimeError("wrapped")
    behind.__cause__ = cause = GoneError("inner")
    assert failure_of(behind).cause is cause


@pytest.mark.parametrize(
    ("delay", "asked"), [(0, 0.0), (30, 30.0), (timedelta(minutes=2), 120.0), (1e6, LONGEST_ASKED)]
)
def test_a_destination_may_request_a_wait_of_up_to_an_hour(delay: float | timedelta, asked: float):
    """P7.1."""
    assert failure_of(RetryAfter(delay)).asked == asked
    assert failure_of(ValueError()).asked is None


@pytest.mark.parametrize(("asked", "delay"), [(0.0, 4.0), (0.9, 4.0), (1.0, 1.0), (90.0, 90.0), (None, 4.0)])
def test_a_row_with_a_requested_wait_of_zero_gets_the_backoff(asked: float | None, delay: float):
    """P7.1: else it would be tried without a pause, for as long as others are taken."""
    assert delay_of(DeliveryFailure(final=False, asked=asked), 3, 0.0) == delay


@given(failures=st.integers(1, 10_000), spread=st.floats(0, 1, exclude_max=True))
def test_a_wait_grows_from_a_second_to_five_minutes_and_loses_a_bounded_part(failures: int, spread: float):
    """P7.1."""
    full = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 20))
    assert full * (1 - SPREAD) <= backoff(failures, spread) <= full


def test_a_destination_is_suspended_after_repeated_failures_without_a_success():
    """P7.1: then one delivery finds out whether it works again."""
    health = DestinationHealth()
    assert health.at_once == AT_ONCE
    for _ in range(MOST_FAILURES - 1):
        health = health.failed(None)
    assert not health.must_rest
    assert not health.answered().failed(None).must_rest
    health = health.failed(None)
    assert health.must_rest
    seconds, health = health.rest(0.0)
    assert (seconds, health.at_once, health.must_rest) == (1.0, 1, False)
    seconds, health = health.failed(None).rest(0.0)
    assert seconds == 2.0
    assert health.answered() == DestinationHealth()


def test_a_requested_wait_begins_at_once_and_is_not_shortened():
    """P7.1."""
    health = DestinationHealth().failed(40.0)
    assert health.must_rest
    assert health.rest(0.9)[0] == 40.0
    assert health.answered().must_rest, "an answer to an earlier delivery does not end it"
