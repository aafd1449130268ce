"""Runs `windlass demo` and draws some of its scenes as docs/images/terminal.svg: `make docs-pictures`.

Nothing is drawn that was not printed: the bytes go through a small terminal that understands what rich writes.
"""

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "terminal.svg"

COLUMNS: Final = 96
SCENES: Final = ("A worker is killed", "A flow", "A batch and a signal", "What the store says")
"""What is drawn; all scenes would make the picture long."""

THEME: Final = TerminalTheme(
    (22, 27, 34),
    (201, 209, 217),
    [
        (13, 17, 23),
        (255, 123, 114),
        (63, 185, 80),
        (210, 153, 34),
        (88, 166, 255),
        (188, 140, 255),
        (57, 197, 207),
        (177, 186, 196),
    ],
    [
        (110, 118, 129),
        (255, 161, 152),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (240, 246, 252),
    ],
)

_PIECE = re.compile(
    r"\x1b\[(?P<number>\d*)(?P<verb>[AK])|\x1b\[\?25[hl]|(?P<newline>\r?\n)|(?P<return>\r)|(?P<text>(?:\x1b\[[\d;]*m|[^\x1b\r\n])+)"
)

_RULE = re.compile(r"\d+  .* ──")


def replayed(output: str) -> list[str]:
    """The lines on the screen after all of `output`: it may have gone up again and written over what was there."""
    lines, row = [""], 0
    for piece in _PIECE.finditer(output):
        if piece["newline"]:
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece["verb"] == "A":
            row = max(0, row - int(piece["number"] or 1))
        elif piece["verb"] == "K":
            lines[row] = ""
        elif piece["text"]:
            lines[row] += piece["text"]
    return lines


def demo() -> str:
    """What `windlass demo` prints at a terminal of this width."""
    environ = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "COLORTERM": ""}
    done = subprocess.run(
        [sys.executable, "-m", "windlass", "demo"], env=environ, capture_output=True, check=True, timeout=120
    )
    return done.stdout.decode()  # not text=True, which takes \r, "back to the start of the line", for a line's end


def drawn(lines: list[str]) -> str:
    """The lines as SVG. Fonts are the reader's own: the picture loads nothing."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    for line in lines:
        console.print(Text.from_ansi(line.rstrip()), no_wrap=True, crop=True)
    svg = console.export_svg(title="windlass demo", theme=THEME, unique_id="demo")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace(
        "Fira Code, monospace", "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
    )


def chosen(lines: list[str]) -> list[str]:
    """The lines of the chosen scenes; each begins with a rule that has its title."""
    found: list[str] = []
    keep, missing = False, set(SCENES)
    for line in lines:
        if _RULE.match(Text.from_ansi(line).plain):
            title = next((title for title in SCENES if title in line), None)
            keep = title is not None
            missing.discard(title or "")
        found += [line] if keep else []
    assert not missing, f"the demo has no scenes {missing}"
    while not found[-1].strip():
        found.pop()
    return found


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(drawn(chosen(replayed(demo()))), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: written\n")


if __name__ == "__main__":
    main()
