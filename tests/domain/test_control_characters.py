"""What reaches a terminal: nothing that acts on it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.control_characters import indented, json_escaped, one_line, visible

ACTING = "\x1b\x07\x00\r\x7f\x9b\x85\u202e\u2066\u200f\u061c\u2028\u2029"


@pytest.mark.parametrize("character", ACTING)
def test_control_characters_are_replaced_by_a_sign(character: str):
    """J10.6: escapes, C0, C1 and bidirectional characters never reach a terminal."""
    assert visible(f"a{character}b") == "a\ufffdb"
    assert one_line(f"a{character}b") == "a\ufffdb"
    assert character not in json_escaped(json.dumps(f"a{character}b", ensure_ascii=False))


def test_newlines_stay_where_lines_are_indented_and_are_written_out_elsewhere():
    assert visible("a\tb\nc") == "a\tb\nc"
    assert one_line("a\nb") == "a\\nb"
    assert indented("a\nb\nc") == "a\n    b\n    c"


@given(st.text())
def test_escaped_json_means_the_same(text: str):
    """J10.6: programs that read `--json` get what was stored."""
    assert json.loads(json_escaped(json.dumps(text, ensure_ascii=False))) == text


@given(st.text(st.characters(min_codepoint=0xA1, exclude_categories=("Cc", "Cf", "Zl", "Zp", "Cs"))))
def test_ordinary_text_stays_as_it_is(text: str):
    assert visible(text) == one_line(text) == json_escaped(text) == text
