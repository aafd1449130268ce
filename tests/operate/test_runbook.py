"""docs/operate/runbook.md: nothing on it is untried."""

import ast
from pathlib import Path

from tests.operate.runbook import commands

HERE = Path(__file__).parent


def tried() -> set[str]:
    """The commands that are texts of the tests beside this one."""
    trees = [ast.parse(test.read_text(encoding="utf-8")) for test in HERE.glob("test_runbook_*.py")]
    texts = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return {text for text in texts if isinstance(text, str) and text.startswith("windlass ")}


def test_every_command_of_the_page_is_tried():
    """P10.2: as it stands there; what the text of the page names in short is a command of its blocks."""
    in_full = tried()
    assert in_full <= commands()
    untried = [
        one for one in sorted(commands() - in_full) if not any(set(one.split()) <= set(two.split()) for two in in_full)
    ]
    assert untried == []
