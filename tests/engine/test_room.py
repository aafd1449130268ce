"""How many claims a node may hold, by its slots and its pace."""

import pytest

from windlass.engine import room
from windlass.engine.room import LEAST, WINDOW, Pace, Room


def at_pace(per_second: int, monkeypatch: pytest.MonkeyPatch, concurrency: int = 4) -> Room:
    """The room of a node that gets through so many jobs a second."""
    monkeypatch.setattr(room, "monotonic", lambda: 0.0)
    made = Room(concurrency)
    for _ in range(int(per_second * WINDOW)):
        made.pace.add()
    monkeypatch.setattr(room, "monotonic", lambda: WINDOW)
    return made


@pytest.mark.parametrize(
    ("per_second", "running", "waiting", "claims", "ready"),
    [
        (0, 0, 0, 4, 0),
        (0, 3, 0, 1, 0),
        (0, 4, 0, 0, 0),
        (0, 4, 1, 0, 0),
        (1000, 4, 0, 50, 4),
        (1000, 4, 25, 25, 4),
        (1000, 4, 26, 0, 4),
        (500, 2, 10, 17, 2),
        (100_000, 4, 0, 5000, 4),
    ],
)
def test_a_node_claims_for_free_slots_and_a_twentieth_of_a_second_ahead(
    per_second: int, running: int, waiting: int, claims: int, ready: int, monkeypatch: pytest.MonkeyPatch
):
    """J3.3: while more than half of that waits, claims are saved up."""
    made = at_pace(per_second, monkeypatch)
    assert (made.to_claim(running, waiting), made.most_ready) == (claims, ready)


@pytest.mark.parametrize(("per_second", "running", "payloads"), [(0, 0, 4), (0, 4, 0), (0, 9, 0), (1000, 4, 10)])
def test_a_node_holds_large_payloads_for_free_slots_and_a_hundredth_of_a_second_ahead(
    per_second: int, running: int, payloads: int, monkeypatch: pytest.MonkeyPatch
):
    """J3.3: a claim that waits is light."""
    assert at_pace(per_second, monkeypatch).to_load(running) == payloads


def test_the_pace_is_that_of_the_last_window_and_falls_with_the_next():
    pace = Pace(0.0)
    for _ in range(20):
        pace.add()
    assert pace.per_second(WINDOW) == 20 / WINDOW
    assert pace.per_second(2 * WINDOW) == 0.0


def test_a_window_that_has_just_begun_counts_if_it_is_faster():
    """J3.3: after a start claims soon grow; a few quick jobs at its very beginning prove little."""
    pace = Pace(0.0)
    pace.add()
    assert pace.per_second(LEAST / 4) == 1 / LEAST
    pace.add()
    assert pace.per_second(LEAST * 4) == 1 / LEAST, "no slower than it was"
