"""docs/adr: every decision has its parts, and is found from the index and from the map."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

FOLDER = ROOT / "docs" / "adr"
DECISIONS = sorted(FOLDER.glob("0*.md"))
LONGEST = 60


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_its_parts_in_order_and_stays_short(page: Path):
    text = page.read_text(encoding="utf-8")
    assert re.match(rf"# {int(page.stem[:4])}\. \S", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[:3] == ["Context", "Decision", "Consequences"]
    assert len(text.splitlines()) <= LONGEST


@pytest.mark.parametrize("map_page", ["docs/adr/index.md", "docs/explain/design.md"])
def test_the_maps_lead_to_every_decision(map_page: str):
    text = (ROOT / map_page).read_text(encoding="utf-8")
    assert [page.name for page in DECISIONS if page.name not in text] == []


def test_decisions_are_numbered_without_gaps():
    assert [int(page.stem[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))
