"""How times and amounts are written, and what may not reach a terminal."""

from datetime import UTC, datetime, timedelta

import pytest

from windlass.cli import phrases
from windlass.cli.tables import Cell, Column, table
from windlass.domain.progress import Progress

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "printed"),
    [
        (0.4, "now"),
        (-0.4, "now"),
        (3, "3 s ago"),
        (59.9, "59 s ago"),
        (60, "1 min ago"),
        (7_300, "2 h ago"),
        (86_400 * 2, "2 d ago"),
        (-90, "in 1 min"),
        (86_400 * 40, "2030-03-22"),
    ],
)
def test_a_time_is_shown_relative_to_now(seconds, printed):
    assert phrases.distance(NOW - timedelta(seconds=seconds), NOW) == printed


@pytest.mark.parametrize(
    ("milliseconds", "printed"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_240, "1.2 s"),
        (60_000, "1 min"),
        (184_000, "3 min 4 s"),
        (7_500_000, "2 h 5 min"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_durations_have_two_units_at_most(milliseconds, printed):
    assert phrases.span(milliseconds) == printed


def test_pipes_get_times_in_utc():
    elsewhere = NOW.astimezone(datetime.fromisoformat("2030-05-01T12:00+05:00").tzinfo)
    assert phrases.utc(elsewhere) == "2030-05-01T12:00:00Z"


@pytest.mark.parametrize(("value", "printed"), [(0, "LOWEST"), (4, "CRITICAL"), (7, "7")])
def test_priorities_have_names_as_far_as_they_go(value, printed):
    assert phrases.priority(value) == printed


def test_progress_shows_what_is_known():
    known = Progress(done=2.5, total=10, message="resizing", at=NOW, percent=25)
    assert phrases.progress(known) == "25 %, 2.5 of 10, resizing"
    assert phrases.progress(Progress(done=1500, total=None, message="", at=NOW, percent=None)) == "1,500"
    assert phrases.bar(25, 8) == "━━┄┄┄┄┄┄"


def test_a_row_for_pipes_stays_a_row(capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    table([Column("a"), Column("b")], [[Cell("two\nlines\tand \x1b[2J"), Cell("")]])
    assert capsys.readouterr().out == "two lines and \ufffd[2J\t\n"


def test_a_value_in_brackets_is_no_markup(sqlite_desk):
    handle = sqlite_desk.charge.using(queue="billing").enqueue(1, "[/red]")
    assert "charge(1, '[/red]')" in sqlite_desk.drawn("job", "show", handle.id, columns=100)
