"""The floor: the store's own statements on bare connections, without the engine. What no engine on them can beat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any


def is_sqlite(url: str) -> bool:
    """Whether a URL names a SQLite file."""
    return url.startswith("sqlite")


def on(url: str) -> Any:
    """The module for a store; PostgreSQL's driver is needed for that one only."""
    return import_module(f"windlass.cli.bench.floor_{'sqlite' if is_sqlite(url) else 'postgres'}")


def enqueue(url: str, count: int, at_a_time: int) -> float:
    """Store jobs, each statement committed before the next one; gives the seconds."""
    seconds: float = on(url).enqueue(url, count, at_a_time)
    return seconds


def enqueue_bulk(url: str, count: int, keyed_every: int) -> float:
    """Store jobs in one transaction; gives the seconds."""
    seconds: float = on(url).enqueue_bulk(url, count, keyed_every)
    return seconds


def listening(url: str, count: int) -> AbstractContextManager[Iterator[str]]:
    """Hear so many notifications; PostgreSQL only."""
    heard: AbstractContextManager[Iterator[str]] = on(url).listening(url, count)
    return heard


def notify(url: str, numbers: Iterable[int]) -> dict[int, float]:
    """Send a notification per number; gives when each call returned. PostgreSQL only."""
    sent: dict[int, float] = on(url).notify(url, numbers)
    return sent
