"""A shop on each store, a bank that may be closed, and the runbook to follow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke, folder, invoke
from tests.operate.runbook import Runbook
from tests.operate.shop import FACTORS, Bank, Shop, declare
from windlass import Settings, Windlass

__all__ = ["folder", "invoke"]


@pytest.fixture
def runbook(invoke: Invoke, store_url: str) -> Runbook:
    return Runbook(store_url, invoke)


@pytest.fixture
def bank(runbook: Runbook) -> Iterator[Bank]:
    """Closed, until a test opens it."""
    made = Bank(Path("bank.sock"))  # in the test's folder, by a name that is short enough for a socket
    yield made
    made.close()


@pytest.fixture
def shop(bank: Bank, store_url: str) -> Iterator[Shop]:
    app = Windlass(store_url, settings=Settings())
    app.migrate()
    yield declare(app, bank.place)
    app.close()


@pytest.fixture(autouse=True)
def _rules() -> Iterator[None]:
    before = dict(FACTORS)
    yield
    FACTORS.clear()
    FACTORS.update(before)
