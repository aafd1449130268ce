"""Fixtures of the tests that drive whole applications; the conftest of each such folder imports them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import jobs
from tests.engine.apps import Apps, Gate, Shop
from windlass import Windlass


@pytest.fixture
def apps(store_url: str) -> Iterator[Apps]:
    """A maker of applications on one new store, of each kind in turn."""
    made = Apps(store_url)
    yield made
    made.close()


@pytest.fixture
def app(apps: Apps) -> Windlass:
    """One application with default settings."""
    return apps()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate for `jobs.hold` and `jobs.ahold`; open at the end, so that no body outlives its test."""
    made = Gate()
    jobs.GATES[made.name] = made
    yield made
    made.open()
    del jobs.GATES[made.name]


@pytest.fixture(autouse=True)
def _nothing_seen() -> Iterator[None]:
    """What bodies note down is per test."""
    jobs.seen.clear()
    yield
    jobs.seen.clear()
    jobs.APPS.clear()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A module of the test's own making."""
    monkeypatch.syspath_prepend(tmp_path)
    made = Shop(tmp_path)
    yield made
    made.unload()
