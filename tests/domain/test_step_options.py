"""Options of steps: bounds, layers and waits."""

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.durations import MAX_SECONDS
from windlass.domain.step_options import (
    STEP_CHECKS,
    STEP_OPTION_NAMES,
    StepOptions,
    StepOptionsDict,
    check_step_options,
    merged,
)
from windlass.errors import InvalidOptionError


def test_the_defaults_are_those_of_the_specification():
    """P1.3."""
    assert dataclasses.asdict(StepOptions()) == {
        "retry_limit": 5, "retry_wait": 1.0, "max_backoff": 30.0, "jitter": True, "recover_on_failure": False,
        "concurrency": 128, "ordered": False, "buffer": 128, "timeout": None, "circuit": None, "resource": None,
    }  # fmt: skip


def test_every_option_has_a_check_and_a_keyword():
    assert list(STEP_OPTION_NAMES) == list(STEP_CHECKS)
    assert set(STEP_OPTION_NAMES) == set(StepOptionsDict.__annotations__)


def test_durations_are_given_as_seconds_or_timedelta_and_kept_as_seconds():
    """P1.3."""
    given = {"retry_wait": timedelta(milliseconds=250), "max_backoff": 5, "timeout": timedelta(minutes=1)}
    assert check_step_options(given, "step 'price'") == {"retry_wait": 0.25, "max_backoff": 5.0, "timeout": 60.0}


def test_bounds_themselves_are_accepted():
    """P1.3."""
    low = {"retry_limit": 0, "retry_wait": 0, "max_backoff": 0, "concurrency": 1, "buffer": 1, "timeout": None}
    high = {"retry_limit": 1000, "concurrency": 1024, "buffer": 10_000, "circuit": "stripe", "resource": "stripe"}
    assert check_step_options(low, "") == low
    assert check_step_options(high, "") == high


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("retry_limit", -1, "a whole number from 0 to 1000"),
        ("retry_limit", True, "a whole number"),
        ("retry_limit", "5", "a whole number"),
        ("retry_wait", -1, "not be negative"),
        ("retry_wait", float("nan"), "not be negative or NaN"),
        ("max_backoff", "30", "a number of seconds or a timedelta"),
        ("jitter", 1, "True or False"),
        ("recover_on_failure", "yes", "True or False"),
        ("concurrency", 0, "from 1 to 1024"),
        ("concurrency", 1025, "from 1 to 1024"),
        ("ordered", None, "True or False"),
        ("buffer", 0, "from 1 to 10000"),
        ("buffer", 10_001, "from 1 to 10000"),
        ("timeout", 0, "timeout=None applies the setting jobs.timeout"),
        ("circuit", "a b", "did you mean 'a-b'?"),
        ("resource", "", "1 to 64 characters"),
    ],
)
def test_a_bad_value_is_refused_with_where_it_is_what_came_and_what_is_expected(option, value, expected):
    """P1.3."""
    with pytest.raises(InvalidOptionError) as caught:
        check_step_options({option: value}, "pipeline orders@1: step 'price'")
    message = str(caught.value)
    assert message.startswith(f"pipeline orders@1: step 'price': {option} must")
    assert expected in message
    assert repr(value) in message
    with pytest.raises(InvalidOptionError, match=option):
        StepOptions(**{option: value})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("retry_limits", "did you mean 'retry_limit'?"),
        ("max_retries", "it is called 'retry_limit' here"),
        ("zzz", "the options are retry_limit, retry_wait"),
    ],
)
def test_an_unknown_option_is_refused_with_a_suggestion(name: str, hint: str):
    """P1.3."""
    with pytest.raises(InvalidOptionError) as caught:
        check_step_options({name: 1}, "step 'price'")
    assert f"step 'price': unknown option {name!r}; {hint}" in str(caught.value)


def test_a_value_whose_code_raises_is_refused_by_name():
    class Lazy(float):
        def __ge__(self, other: object) -> bool:
            raise LookupError

    with pytest.raises(InvalidOptionError, match="retry_wait cannot be Lazy: reading it raised LookupError"):
        check_step_options({"retry_wait": Lazy(1)}, "step 'price'")


def test_given_options_win_over_the_base():
    """P1.3."""
    base = StepOptions(retry_limit=2, circuit="stripe")
    options = merged(base, {"circuit": None, "buffer": 1})
    assert options == StepOptions(retry_limit=2, buffer=1)
    assert merged(base, {}) is base


def test_the_wait_doubles_up_to_its_maximum():
    """P1.3."""
    options = StepOptions(retry_wait=1, max_backoff=30, jitter=False)
    assert [options.delay_after(attempt, lambda: 0.5) for attempt in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


def test_full_jitter_takes_a_random_part_of_the_wait():
    """P1.3."""
    options = StepOptions(retry_wait=4)
    assert [options.delay_after(2, iter([part]).__next__) for part in (0.0, 0.25, 1.0)] == [0, 2, 8]


@given(
    wait=st.floats(0, MAX_SECONDS),
    longest=st.floats(0, MAX_SECONDS),
    attempt=st.integers(1, 10**6),
    part=st.floats(0, 1),
)
def test_no_wait_is_over_the_maximum_however_many_attempts(wait: float, longest: float, attempt: int, part: float):
    """P1.3."""
    options = StepOptions(retry_wait=wait, max_backoff=longest)
    assert 0 <= options.delay_after(attempt, lambda: part) <= longest


def test_attempts_count_from_one():
    with pytest.raises(InvalidOptionError, match="counts from 1"):
        StepOptions().delay_after(0, lambda: 0.5)
