"""Tracebacks begin with the user's first frame."""

import pytest

from windlass.domain.durations import seconds
from windlass.errors import InvalidOptionError
from windlass.runtime.printed_traceback import CUT, LONGEST, LONGEST_MESSAGE, print_traceback


def body(error: Exception) -> None:
    raise error


def test_an_error_of_windlass_itself_keeps_its_frames():
    with pytest.raises(InvalidOptionError, match="delay") as caught:
        seconds("x", "delay")
    caught.value.__traceback__ = caught.value.__traceback__.tb_next if caught.value.__traceback__ else None
    assert "durations.py" in print_traceback(caught.value)


def test_a_long_message_is_cut_at_its_end_and_a_long_traceback_at_its_beginning():
    with pytest.raises(ValueError, match="xxx") as caught:
        body(ValueError("x" * 2 * LONGEST))
    text = print_traceback(caught.value)
    assert text.startswith("Traceback")
    assert text.endswith("x…\n")
    many = ExceptionGroup("many", [ValueError("x" * LONGEST_MESSAGE) for _ in range(10)])
    text = print_traceback(many)
    assert len(text) == LONGEST
    assert text.startswith(CUT)
