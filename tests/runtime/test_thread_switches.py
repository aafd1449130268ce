"""A worker's process lets threads take turns sooner."""

import sys
from collections.abc import Iterator

import pytest

from windlass.runtime import thread_switches


@pytest.fixture(autouse=True)
def interval_left_alone() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    after = sys.getswitchinterval()
    sys.setswitchinterval(before)
    assert after == pytest.approx(before, abs=2e-6)


def test_the_interval_is_shorter_while_it_runs_and_set_back_after_an_error_too():
    inside = []

    def fails() -> None:
        with thread_switches.frequent():
            inside.append(sys.getswitchinterval())
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert inside == pytest.approx([thread_switches.INTERVAL], abs=2e-6)


def test_a_shorter_interval_is_kept():
    before = sys.getswitchinterval()
    sys.setswitchinterval(thread_switches.INTERVAL / 2)
    shorter = sys.getswitchinterval()  # Python keeps it in whole microseconds
    try:
        with thread_switches.frequent():
            assert sys.getswitchinterval() == shorter
    finally:
        sys.setswitchinterval(before)
