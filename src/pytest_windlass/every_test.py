"""Registered only in projects that name their application: no test of theirs ever writes to its real store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_windlass import APP, load

if TYPE_CHECKING:
    from windlass import Windlass


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Find the application before the first test: a wrong name is one error, not one for each test."""
    load(session.config.getini(APP))


@pytest.fixture(autouse=True)
def _windlass_isolated(windlass_app: Windlass) -> None:
    """Enter the store of the test before anything else of it."""
