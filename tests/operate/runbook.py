"""docs/operate/runbook.md as something to follow: its commands are run as they stand there, with values for its names.

A command that the page does not have is an error, so that a test cannot do other things than the page says.
"""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import Result

from tests.cli.conftest import Invoke
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "operate" / "runbook.md"
OFFICE = """
from pathlib import Path

from tests.operate.shop import declare
from windlass import Windlass

app = Windlass()
declare(app, Path("bank.sock"))
"""
_NAME = re.compile(r"\b[A-Z]{2,}\b")
_COMMAND = re.compile(r"`(windlass [^`]+)`")


@cache
def commands() -> frozenset[str]:
    """Every command of the page: the lines of its blocks, and those in its text."""
    lines = [line for block in blocks(PAGE) if block.info == "sh" for line in block.body.splitlines()]
    found = [line.partition("#")[0].strip() for line in lines]
    return frozenset([*found, *_COMMAND.findall(PAGE.read_text(encoding="utf-8"))])


class Runbook:
    """The page, followed on one store."""

    def __init__(self, url: str, invoke: Invoke) -> None:
        self.url = url
        self._invoke = invoke
        (Path.cwd() / "office.py").write_text(OFFICE)

    def run(self, command: str, *more: str, **names: object) -> Result:
        """Run a command of the page; `more` are options that answer its questions or shape its output."""
        assert command in commands(), f"the runbook has no command {command!r}"
        words = shlex.split(_NAME.sub(lambda found: shlex.quote(str(names[found[0]])), command.replace('"', "")))
        return self._invoke(*words[1:], *more, WINDLASS_URL=self.url, WINDLASS_APP="office:app")

    def says(self, command: str, *more: str, **names: object) -> str:
        """Run a command that succeeds, and return what it printed."""
        result = self.run(command, *more, **names)
        assert result.exit_code == 0, result.output
        return result.output

    def lines(self, command: str, *more: str, **names: Any) -> list[list[str]]:
        """Run a command that prints rows, and return them."""
        result = self.run(command, *more, **names)
        assert result.exit_code == 0, result.output
        return [line.split("\t") for line in result.stdout.splitlines()]
