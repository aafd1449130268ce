"""The pages of the documentation, and the code in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_NAMED_FILE = re.compile(r"# (?P<name>\w+)\.py\b")
_WAIT = re.compile(r"\b(?P<call>a?(?:result|join))\(timeout=(?:[5-9]|\d\d)\)")


class Block(NamedTuple):
    """One fenced block. `before` is the text in front of it, for the comment that says why it is skipped."""

    info: str
    body: str
    line: int
    before: str


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            found["info"].strip(), found["body"], text.count("\n", 0, found.start()) + 2, text[: found.start()].rstrip()
        )
        for found in _FENCE.finditer(text)
    ]


def program(page: Path) -> tuple[str, str]:
    """The examples of a page as one program: the name of its module and its text. Empty if there are none.

    Its lines stand where they stand in the page, so that a traceback leads to the example. The first block may name the
    file it belongs in (`# shop.py`).
    """
    examples = [block for block in blocks(page) if block.info == "python"]
    lines: list[str] = []
    for block in examples:
        lines += [""] * (block.line - 1 - len(lines)) + block.body.splitlines()
    named = _NAMED_FILE.match(examples[0].body) if examples else None
    name = named["name"] if named else re.sub(r"\W", "_", page.stem).lower()
    return name, patient("\n".join(lines) + "\n") if lines else ""


def patient(text: str) -> str:
    """The program with waits for jobs that a busy machine does not exceed; a page shows what fits a reader's."""
    return _WAIT.sub(r"\g<call>(timeout=90)", text)


def prose(page: Path) -> str:
    """The text of a page, however its lines are wrapped."""
    return " ".join(page.read_text(encoding="utf-8").split())


def outputs(page: Path) -> list[str]:
    """What the page says its program prints: blocks marked `text output`."""
    return [block.body.rstrip("\n") for block in blocks(page) if block.info == "text output"]
