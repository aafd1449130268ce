"""A worker's process collects garbage less often."""

import gc
from collections.abc import Iterator

import pytest

from windlass.runtime import garbage


@pytest.fixture(autouse=True)
def collector_left_alone() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    assert gc.get_threshold() == before
    gc.set_threshold(*before)


def test_the_threshold_is_raised_while_it_runs_and_set_back_after_an_error_too():
    before, inside = gc.get_threshold(), []

    def fails() -> None:
        with garbage.seldom():
            inside.append((gc.get_threshold(), gc.get_freeze_count() > 0))
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert inside == [((garbage.YOUNG_OBJECTS, *before[1:]), True)]
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("chosen", [0, garbage.YOUNG_OBJECTS * 5])
def test_thresholds_that_were_set_before_are_kept(chosen: int):
    before = gc.get_threshold()
    gc.set_threshold(chosen, 20, 30)
    try:
        with garbage.seldom():
            assert gc.get_threshold() == (chosen, 20, 30)
        assert gc.get_threshold() == (chosen, 20, 30)
    finally:
        gc.set_threshold(*before)
