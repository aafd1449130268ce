"""Keys of transitions: written by claims, read when failures are inspected."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from windlass.domain.item_paths import FIRST, child, readable
from windlass.domain.transition_keys import read_transition_key, transition_key


@given(some.integers(0, 9999), some.integers(1, 10**6), some.lists(some.integers(0, 10**6), max_size=3))
def test_a_written_key_is_read_back(step: int, attempt: int, numbers: list[int]):
    """P2.5, P6.1: step, attempt, and the position of the item."""
    path = ""
    for number in numbers:
        path = child(path or FIRST, number)
    found = read_transition_key(transition_key("0198c0de-0000-7000-8000-000000000001", step, attempt, path))
    assert found == (step, attempt, readable(path) or None)


@pytest.mark.parametrize("text", ["", "0198", "0198:1", "0198:a:1", "0198:1:1:"])
def test_other_texts_are_no_keys(text: str):
    assert read_transition_key(text) is None
