"""Prose is wrapped: a change of one sentence shows as a change of its lines, and no editor has to scroll sideways."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

LONGEST = 120
FILES = [*PAGES, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"))]

_WHOLE = re.compile(
    r"^```.*?^```[ \t]*$|<!-- generated: (?P<name>[\w.]+) -->.*?<!-- end: (?P=name) -->", re.MULTILINE | re.DOTALL
)
_NO_PROSE = re.compile(r"\s*(?:\||#|!\[|<|\[[^\]]*\]\([^)]*\)$)")
"""Tables, headings, pictures, HTML, and links that cannot be broken."""


def long_lines(text: str) -> Iterator[str]:
    for line in _WHOLE.sub("", text).splitlines():
        if len(line) > LONGEST and not _NO_PROSE.match(line) and " " in line.strip():
            yield line


@pytest.mark.parametrize("page", FILES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_of_prose_are_wrapped(page: Path):
    assert list(long_lines(page.read_text(encoding="utf-8"))) == [], f"over {LONGEST} characters"


def test_tables_and_code_are_as_wide_as_they_need():
    wide = "x " * 100
    assert list(long_lines(f"| {wide} |\n```text\n{wide}\n```\n# {wide}\n")) == []
    assert list(long_lines(f"- {wide}\n")) == [f"- {wide}"]
