"""A folder with an application in it, and ways to run the command there."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.commands import SHOP, Commands
from windlass.cli.main import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the application `shop:app`, on the store of WINDLASS_URL."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "shop.py").write_text(SHOP)
    return place


@pytest.fixture
def commands(folder: Path, store_url: str) -> Iterator[Commands]:
    """Processes on each store in turn."""
    started = Commands(folder, store_url)
    yield started
    started.close()


@pytest.fixture
def sqlite_commands(folder: Path, sqlite_url: str) -> Iterator[Commands]:
    """Processes on SQLite: for what does not depend on the store."""
    started = Commands(folder, sqlite_url)
    yield started
    started.close()


Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_url: str) -> Iterator[Invoke]:
    """The command in this process, in an empty folder; what it imports is forgotten afterwards."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("WINDLASS_URL", sqlite_url)
    monkeypatch.delenv("WINDLASS_APP", raising=False)
    before = set(sys.modules)

    def run(*arguments: str, **environ: str) -> Result:
        return CliRunner().invoke(main, arguments, env=environ)

    yield run
    for name in set(sys.modules) - before:
        if str(place) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
