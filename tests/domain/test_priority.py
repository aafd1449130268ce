"""Priorities."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.priority import Priority, parse_priority
from windlass.errors import InvalidOptionError


def test_the_named_priorities_are_those_of_the_specification():
    """J1.3: LOWEST 0, LOW 1, NORMAL 2, HIGH 3, CRITICAL 4."""
    assert [(priority.name, priority.value) for priority in Priority] == [
        ("LOWEST", 0),
        ("LOW", 1),
        ("NORMAL", 2),
        ("HIGH", 3),
        ("CRITICAL", 4),
    ]


@pytest.mark.parametrize("value", [*range(10), *Priority])
def test_names_and_integers_from_0_to_9_are_accepted_as_plain_integers(value):
    """J1.3: integers 0-9 are accepted."""
    parsed = parse_priority(value)
    assert parsed == value
    assert type(parsed) is int


@given(st.one_of(st.integers(max_value=-1), st.integers(min_value=10)))
def test_other_integers_are_refused(value):
    """J1.3: and no others."""
    with pytest.raises(InvalidOptionError, match="integer from 0 to 9"):
        parse_priority(value)


@pytest.mark.parametrize("value", [True, False, 2.0, "2", None, [2]])
def test_other_types_are_refused_and_shown(value):
    """J1.3: a bool is not a priority."""
    with pytest.raises(InvalidOptionError) as refused:
        parse_priority(value)
    assert f"got {value!r}" in str(refused.value)


def test_a_name_as_text_gets_a_suggestion():
    with pytest.raises(InvalidOptionError, match=r"did you mean Priority\.HIGH"):
        parse_priority("high")
