"""A folder with an application in it, and ways to run the command there."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cli.commands import SHOP, Commands
from tests.cli.desk import Desk
from windlass import JobHandle, Windlass
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


class Shop:
    """Enqueues the project's jobs from here; `shop:app` itself belongs to the workers."""

    def __init__(self, url: str) -> None:
        self.app = Windlass(url, allow=["shop"])

    def enqueue(self, name: str, *args: object, queue: str = "default") -> JobHandle[Any]:
        function = getattr(import_module("shop"), name).function
        return self.app.bind(function, *args).using(queue=queue).enqueue()


@pytest.fixture
def shop_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Shop]]:
    """The project's jobs on a store."""
    monkeypatch.syspath_prepend(folder)
    opened: list[Shop] = []

    def open_shop(url: str) -> Shop:
        opened.append(Shop(url))
        return opened[-1]

    yield open_shop
    for shop in opened:
        shop.app.close()
    sys.modules.pop("shop", None)


Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_url: str) -> Invoke:
    """The command in this process, in an empty folder; what it imports there is forgotten afterwards."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("WINDLASS_URL", sqlite_url)
    monkeypatch.delenv("WINDLASS_APP", raising=False)
    before = set(sys.modules)

    def run(*arguments: str, stdin: str | None = None, **environ: str) -> Result:
        try:
            return CliRunner().invoke(main, arguments, env=environ, input=stdin)
        finally:
            for name in set(sys.modules) - before:
                if str(place) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]

    return run


@pytest.fixture
def desk(invoke: Invoke, store_url: str) -> Iterator[Desk]:
    """Jobs and the command on each store in turn."""
    opened = Desk(store_url, invoke)
    yield opened
    opened.app.close()


@pytest.fixture
def sqlite_desk(invoke: Invoke, sqlite_url: str) -> Iterator[Desk]:
    """Jobs and the command on SQLite: for what does not depend on the store."""
    opened = Desk(sqlite_url, invoke)
    yield opened
    opened.app.close()
