"""The floor: the store's own statements on bare connections, without the engine. What no engine on them can beat."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from windlass.cli.bench.scratch import is_sqlite


def on(url: str) -> Any:
    """The module for a store; PostgreSQL's driver is needed for that one only."""
    return import_module(f"benchmarks.floors.{'sqlite' if is_sqlite(url) else 'postgres'}")
