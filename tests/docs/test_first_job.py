"""docs/start/first-job.md: the commands of the page, typed as a reader would, on the stores it names."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import Commands
from tests.docs.pages import ROOT, blocks, patient

PAGE = ROOT / "docs" / "start" / "first-job.md"
GIVEN, LEFT_OUT = 'Windlass("sqlite:///shop.db")', "Windlass()"


def section(title: str) -> str:
    return PAGE.read_text(encoding="utf-8").partition(f". {title}\n")[2].partition("\n## ")[0]


def commands_of(title: str) -> list[list[str]]:
    """The lines of a section's shell blocks, split into words."""
    shell = re.findall(r"^```sh\n(.*?)^```", section(title), re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in shell for line in block.splitlines()]


def shop(folder: Path) -> str:
    """The program of the page, which is its first block."""
    text = patient(next(block.body for block in blocks(PAGE) if block.info == "python"))
    (folder / "shop.py").write_text(text, encoding="utf-8")
    return text


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Commands]:
    """A user with an empty folder."""
    typing = Commands(tmp_path, "")
    yield typing
    typing.close()


def type_in(reader: Commands, typed: list[list[str]]) -> list[str]:
    """Do what the lines say, each as it is meant; what the programs printed."""
    said: list[str] = []
    for command, *arguments in typed:
        if command == "export":
            continue  # the test has its own server
        if command == "windlass" and arguments[0] == "worker":
            reader.start(*arguments).says(r"^ready")
        elif command == "windlass":
            code, printed = reader.run(*arguments)
            assert code == 0, printed
        else:
            assert command == "python"
            environ = {**os.environ, "WINDLASS_URL": reader.url}
            call = [sys.executable, *map(patient, arguments)]
            said.append(subprocess.check_output(call, cwd=reader.folder, env=environ, text=True, timeout=300))
    return said


def test_another_process_runs_it(reader: Commands):
    shop(reader.folder)
    assert type_in(reader, commands_of("Let another process run it")) == ["charged 44\n"]
    assert "It prints `charged 44`" in section("Let another process run it")


def test_the_program_moves_to_postgresql(reader: Commands, pg_url: str):
    title = "Move to PostgreSQL"
    program = shop(reader.folder)
    assert GIVEN in program
    assert f"Write `app = {LEFT_OUT}`" in section(title)
    (reader.folder / "shop.py").write_text(program.replace(GIVEN, LEFT_OUT))
    reader.url = pg_url
    typed = commands_of(title)
    assert ["windlass", "migrate", "shop:app"] in typed
    assert type_in(reader, typed) == ["charged 45\n"]
    assert "It prints `charged 45`" in section(title)
    assert not (reader.folder / "shop.db").exists()
