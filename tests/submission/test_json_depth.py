"""How deep a JSON text is nested."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hostile_values import nested
from windlass.submission.json_depth import MAX_LEVELS, is_too_deep

TEXTS = st.text(alphabet='[]{}"\\,a', max_size=12)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def levels(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(levels, value), default=0) if isinstance(value, list) else 0


@given(VALUES)
def test_levels_are_counted_as_a_parser_would(value):
    data, depth = json.dumps(value).encode(), levels(value)
    assert not is_too_deep(data, depth)
    assert depth == 0 or is_too_deep(data, depth - 1)


@pytest.mark.parametrize("text", ["[" * 500 + "]" * 500, "[" * 500, "]" * 500, '"[' * 300, "\\[" * 300])
def test_brackets_in_texts_are_no_levels(text: str):
    assert not is_too_deep(json.dumps([text]).encode())


def test_the_limit_itself_is_allowed():
    assert not is_too_deep(json.dumps(nested(MAX_LEVELS)).encode())
    deeper = json.dumps(nested(MAX_LEVELS + 1)).encode()
    assert is_too_deep(deeper)
    assert is_too_deep(deeper.replace(b"[]", b'["]"]'))
