"""`windlass demo` tells the truth, drawn or plain."""

import re
from pathlib import Path

from tests.cli.commands import Commands
from windlass.cli.demo.presenter import PlainStage, stage
from windlass.cli.demo.promises import Promises


def test_every_scene_is_played_and_holds(tmp_path: Path):
    """J5.2, J3.1, J7.2: retries, priorities and a killed worker as the demo tells them."""
    code, said = Commands(tmp_path, "").run("demo", environ={"TMPDIR": str(tmp_path)})
    assert code == 0, said
    for part in (
        "== 1. The first program",
        "charged 42",
        "== 2. Retries with backoff",
        r"attempt 3  ✗  BankTimeoutError: .* next in 1 s",
        "attempt 4  ✓ paid",
        "== 3. Priorities",
        r"1  LOWEST    tidy the shelves  CRITICAL  fraud alert",
        "== 4. A worker is killed",
        "SIGKILL  worker A is gone",
        "lost with A → succeeded on B  SUCCEEDED  1",
        "== 5. Watching and steering",
        r"SUCCEEDED: windlass.cli.demo.shop:print_run\(40\)",
        "thank ran by itself: 40 pages are ready",
        "a print run of 40,000 pages was canceled",
        "== 6. Dead letters",
        r"4 +windlass.cli.demo.shop:invoice +KeyError",
        "4 started over: kettle: 40 €, lamp: 25 €",
        "== 7. A service that is down",
        "circuit carrier: OPEN  attempts so far",
        "circuit_open: the circuit of carrier is open",
        "circuit carrier: CLOSED",
        "== 8. What the store says",
        r"a worker is killed +12 +12 +12 .*✓ each",
        r"watching and steering +2 +2 +2 .*✓ each",
        "everything was as told",
    ):
        assert re.search(part, said), part
    assert list(tmp_path.glob("windlass-demo-*")) == [], "the folder is removed"
    assert "Traceback" not in said


def test_it_is_drawn_when_colours_are_forced(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    told = stage()
    told.scene(1, "A title", "Some text.")
    told.code("print(42)", "shop.py")
    told.table(["jobs"], [[("12", "green")]])
    with told.board() as board:
        told.line(("a line above the board", "bold"))
        board.show([("1 A✓", "black on green")], "a caption")
    drawn = capsys.readouterr().out
    for part in ("A title", "Some text.", "42", "╭", "12", "a line above the board", "1 A✓", "a caption", "\x1b["):
        assert part in drawn, part


def test_a_broken_promise_is_told_and_remembered(capsys):
    promises = Promises(PlainStage())
    promises.keep("water flows uphill", held=False)
    promises.keep("water flows downhill", held=True)
    assert promises.broken == ["water flows uphill"]
    assert "not as told: water flows uphill" in capsys.readouterr().out
