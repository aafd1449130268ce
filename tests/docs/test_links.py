"""Links of the documentation lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

_LINK = re.compile(r"\]\((?P<target>[^()\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
_FILE = re.compile(r"`(?P<path>(?:[\w.-]+/)+(?:[\w-]+\.(?:md|py|sql|svg))?)`")
"""Folders end in a slash."""
_GENERATED = re.compile(r"<!-- generated: (?P<name>[\w.]+) -->.*?<!-- end: (?P=name) -->", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors GitHub gives a page's headings."""
    headings = _HEADING.finditer(_FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", found["text"].lower()).replace(" ", "-") for found in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_inside_the_project_leads_to_a_file_and_a_heading(page: Path):
    broken = []
    for found in _LINK.finditer(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        target = found["target"]
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_that_a_page_names_exists(page: Path):
    """Of the project, or of the package where a page speaks of that."""
    text = _GENERATED.sub("", _FENCED.sub("", page.read_text(encoding="utf-8")))
    named = {found["path"] for found in _FILE.finditer(text)}
    places = (ROOT, ROOT / "src", ROOT / "src" / "windlass")
    assert {path for path in named if not any((place / path).exists() for place in places)} == set()


def test_the_table_in_the_readme_leads_to_every_page():
    """A page that it leaves out cannot be found from there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text[text.index("## Documentation") :]
    linked = {found["target"] for found in _LINK.finditer(table)}
    folders = ("start", "learn", "guides", "operate", "reference", "explain")
    pages = {page.relative_to(ROOT).as_posix() for folder in folders for page in (ROOT / "docs" / folder).glob("*.md")}
    assert pages - linked == set()
