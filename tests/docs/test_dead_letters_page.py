"""docs/operate/dead-letters.md: the table of reasons is the one of the code."""

import re

from tests.docs.pages import ROOT
from windlass.domain.dead_letter import REASONS

PAGE = ROOT / "docs" / "operate" / "dead-letters.md"


def test_the_runbook_has_every_reason_with_its_first_action():
    """P6.1: dlq show and the runbook print the same."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(name, reason.meaning, reason.first_action) for name, reason in REASONS.items()]
