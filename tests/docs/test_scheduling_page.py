"""docs/learn/scheduling.md: its commands print what it says."""

import shlex

import pytest
from click.testing import CliRunner

from tests.docs.pages import ROOT, blocks
from windlass.cli.main import main

PAGE = ROOT / "docs" / "learn" / "scheduling.md"
COMMANDS = [block.body for block in blocks(PAGE) if block.info == "text command"]


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: block.splitlines()[0])
def test_a_command_prints_what_the_page_says(block: str):
    """J9.1."""
    command, _, expected = block.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "windlass"
    done = CliRunner().invoke(main, arguments)
    printed = [line.rstrip().replace("\t", "  ") for line in (done.stderr + done.stdout).splitlines()]
    assert printed == expected.splitlines()
