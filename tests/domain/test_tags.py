"""Tags in their stored form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.tags import tags_of, tags_text


@given(st.lists(st.text()).map(tuple))
def test_tags_are_restored_unchanged(tags: tuple[str, ...]):
    """J1.1: whatever characters they have."""
    assert tags_of(tags_text(tags)) == tags


def test_no_tags_store_nothing():
    assert tags_text(()) is None


@pytest.mark.parametrize("text", [None, "", "no JSON", "{}", "7", "[" * 100_000])
def test_damaged_tags_are_ignored(text: str | None):
    """J4.1: a whole claim must not fail over one row's tags."""
    assert tags_of(text) == ()


def test_tags_that_are_not_texts_are_ignored():
    assert tags_of('["a", 7, null, "b"]') == ("a", "b")
