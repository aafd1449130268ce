"""`windlass demo` shows what happens, drawn or plain."""

import re
from pathlib import Path

from tests.cli.commands import Commands
from windlass.cli.demo.presenter import Presenter

SCENES = (
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
    "== 6. A flow",
    r"wrapped\.then\(shop\.label\)",
    "7 jobs: 7 succeeded",
    r"┢━ group  3/3 succeeded",
    r"┣━ ✓ shop:wrap .* SUCCEEDED",
    r"┡━\n +✓ shop:label",
    "lamp, rug, engraved kettle: on the way",
    "== 7. A batch and a signal",
    r"spring sale  SUCCEEDED  █+ 100 %  240 completed, 0 failed of 240",
    "WAITING: it waits for the signal 'sale:approved'",
    "the sale is open: 240 new prices, approved by Ann",
    "== 8. Dead letters",
    r"4 +windlass.cli.demo.shop:invoice +KeyError",
    "4 started over: kettle: 40 €, lamp: 25 €",
    "== 9. A pipeline",
    r"orders\.reduce\(total\)",
    r"4 +total +step finished +1 +Invoice\(lines=5, euros=250\)",
    "rejected  item 5 by price: RejectItem: unicorn is not in the catalogue",
    "✓  5 lines, 250 € paid",
    "order 2: DLQ  retry_exhausted: ConnectionError: the bank does not answer",
    r"7 +charge +ended +3 +ConnectionError",
    "2 lines, 130 € paid; calls: lines 1, price 2, total 1, charge 4",
    "== 10. A service that is down",
    "circuit carrier: OPEN  attempts so far",
    "circuit_open: the circuit of carrier is open",
    "circuit carrier: CLOSED",
    "== 11. A schedule",
    r"tick \d\d:\d\d:\d\d  → delivered",
    "stock report, although it is paused",
    "== 12. What the store says",
    r"a worker is killed +12 +12 +12 .*✓ each",
    r"watching and steering +2 +2 +2 .*✓ each",
    r"a flow +7 +7 +7 .*✓ each",
    r"a batch and a signal +241 +241 +241 .*✓ each",
    r"a pipeline +1 +1 +1 .*✓ each",
    r"a schedule +\d +\d +\d .*✓ each",
    "all of it happened as described",
)
"""What each scene shows, in order."""


def test_every_scene_is_played_and_holds(tmp_path: Path):
    """J5.2, J3.1, J7.2: retries, priorities and a killed worker as the demo shows them."""
    code, printed = Commands(tmp_path, "").run("demo", environ={"TMPDIR": str(tmp_path)})
    assert code == 0, printed
    for part in SCENES:
        assert re.search(part, printed), part
    assert list(tmp_path.glob("windlass-demo-*")) == [], "the folder is removed"
    assert "Traceback" not in printed


def test_the_demo_is_drawn_when_colours_are_forced(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    presenter = Presenter()
    presenter.scene(1, "A title", "Some text.")
    presenter.code("print(42)", "shop.py")
    presenter.table(["jobs"], [[("12", "green")]])
    with presenter.board() as board:
        presenter.line(("a line above the board", "bold"))
        board([("1 A✓", "black on green")], "a caption")
    with presenter.picture() as picture:
        picture([[("✓ ", "green"), ("a job", "")], [("○ another", "")]])
    drawn = capsys.readouterr().out
    for part in (
        "A title",
        "Some text.",
        "42",
        "╭",
        "12",
        "a line above the board",
        "1 A✓",
        "a caption",
        "a job",
        "○ another",
        "\x1b[",
    ):
        assert part in drawn, part


def test_a_picture_is_printed_once_where_nothing_can_be_redrawn(capsys):
    with Presenter().picture() as picture:
        picture([[("○ ", "dim"), ("a job", "")]])
        picture([[("✓ ", "green"), ("a job", "")]])
    assert capsys.readouterr().out == "   ✓ a job\n"


def test_an_expectation_that_does_not_hold_is_shown_and_remembered(capsys):
    presenter = Presenter()
    presenter.expect("water flows uphill", holds=False)
    presenter.expect("water flows downhill", holds=True)
    assert presenter.unmet == ["water flows uphill"]
    assert "this did not hold: water flows uphill" in capsys.readouterr().out
