"""The pictures under docs/images are what the scripts draw, and show what is."""

from pathlib import Path

import pytest

from docs import draw_clock_changes, draw_pipelines
from docs.draw_life import IMAGES, MOVES, PICTURES
from docs.draw_terminal import replayed
from tests.docs.pages import PAGES, ROOT
from windlass import JobStatus
from windlass.domain import states


@pytest.mark.parametrize("name", PICTURES)
def test_a_drawn_picture_is_what_its_script_draws(name: str):
    assert (IMAGES / name).read_text(encoding="utf-8") == PICTURES[name](), "stale: run `make docs-pictures`"


def test_the_picture_of_clock_changes_is_what_its_script_draws():
    """J9.1: its ticks are those of the expressions."""
    picture = draw_clock_changes.PICTURE
    assert picture.read_text(encoding="utf-8") == draw_clock_changes.draw(), "stale: run `make docs-pictures`"


def test_the_picture_of_pipelines_is_what_its_script_draws():
    picture = draw_pipelines.PICTURE
    assert picture.read_text(encoding="utf-8") == draw_pipelines.draw(), "stale: run `make docs-pictures`"


def test_the_picture_of_states_has_every_move_of_the_state_machine():
    """J2.1: all but those of batches, which never run; the page describes them."""
    drawn = {(JobStatus(move.source.text), JobStatus(move.target.text)) for move in MOVES}
    legal = {pair for name, pairs in states.MOVES.items() if name is not states.Move.CONCLUDE for pair in pairs}
    assert drawn == legal
    assert len(MOVES) == len(drawn)


def test_every_arrow_begins_and_ends_at_its_boxes():
    for move in MOVES:
        for box, (x, y) in ((move.source, move.points[0]), (move.target, move.points[-1])):
            assert box.left <= x <= box.right, move
            assert box.top <= y <= box.bottom, move


def test_every_picture_is_shown_somewhere():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    unused = [path.name for path in Path(IMAGES).iterdir() if f"images/{path.name})" not in text]
    assert unused == []


def test_pictures_load_nothing():
    """They are shown where nothing may be fetched, and load nothing that would track readers."""
    for path in sorted(Path(IMAGES).glob("*.svg")):
        text = path.read_text(encoding="utf-8")
        assert "url(http" not in text, path.relative_to(ROOT)
        assert "href=" not in text, path.relative_to(ROOT)


def test_the_screenshot_is_made_of_what_is_on_the_screen_at_last():
    """A progress line that was written over is not drawn twice."""
    output = (
        "one\n\x1b[?25l\x1b[32mhalf\x1b[0m\ncaption\r\x1b[2K\x1b[1A\x1b[2K\x1b[32mdone\x1b[0m\ncaption\n\x1b[?25hend\n"
    )
    assert replayed(output) == ["one", "\x1b[32mdone\x1b[0m", "caption", "end", ""]
