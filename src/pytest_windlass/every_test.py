"""Registered only in projects that name their application: no test of theirs ever writes to its real store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from windlass import Windlass


@pytest.fixture(autouse=True)
def _windlass_isolated(windlass_app: Windlass) -> None:
    """Enter the store of the test before anything else of it."""
