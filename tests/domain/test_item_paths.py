"""Paths of items: text that sorts in the order of the expansion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.item_paths import FIRST, behind, child, parse_readable, readable, right_behind

numbers = st.lists(st.integers(0, 10**12), min_size=1, max_size=4)


def path_of(parts: list[int]) -> str:
    path = FIRST
    for part in parts:
        path = child(path, part)
    return path


@given(numbers, numbers)
def test_paths_sort_as_their_numbers_do(one: list[int], other: list[int]):
    """P1.3: a reduction sees the order of the expansion, children behind their parent."""
    assert (path_of(one) < path_of(other)) == (one < other)


@given(numbers)
def test_readable_paths_are_read_back(parts: list[int]):
    """P2.5: keys show the numbers."""
    text = readable(path_of(parts))
    assert text == ".".join(map(str, parts))
    assert parse_readable(text) == path_of(parts)


@given(numbers, st.integers(0, 10**6))
def test_descendants_lie_between_an_item_and_what_is_behind_it(parts: list[int], index: int):
    """P2.3: the range of a part covers what its items expand into."""
    path = path_of(parts)
    assert path < right_behind(path) < child(path, index) < behind(path)
    assert behind(path) == path_of([*parts[:-1], parts[-1] + 1])


def test_indexes_out_of_range_are_refused():
    for index in (-1, 10**15):
        with pytest.raises(ValueError, match="index of an item"):
            child(FIRST, index)
    assert readable(FIRST) == ""
