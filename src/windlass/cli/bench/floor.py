"""The floor: the store's own statements on bare connections, without the engine. What no engine on them can beat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

Progress = Callable[[int], None]


def is_sqlite(url: str) -> bool:
    """Whether a URL names a SQLite file."""
    return url.startswith("sqlite")


def _on(url: str) -> Any:
    """The module for a store; PostgreSQL's driver is needed for that one only."""
    return import_module(f"windlass.cli.bench.floor_{'sqlite' if is_sqlite(url) else 'postgres'}")


def drain(url: str, batch: int, progress: Progress) -> None:
    """Claim and complete everything that waits, `batch` at a time."""
    _on(url).drain(url, batch, progress)


def enqueue(url: str, count: int, at_a_time: int) -> float:
    """Store jobs, each statement committed before the next one; gives the seconds."""
    seconds: float = _on(url).enqueue(url, count, at_a_time)
    return seconds


def enqueue_bulk(url: str, count: int, keyed_every: int) -> float:
    """Store jobs in one transaction; gives the seconds."""
    seconds: float = _on(url).enqueue_bulk(url, count, keyed_every)
    return seconds


def listening(url: str) -> AbstractContextManager[Iterator[str]]:
    """Hear notifications; PostgreSQL only."""
    heard: AbstractContextManager[Iterator[str]] = _on(url).listening(url)
    return heard


def notify(url: str, numbers: Iterable[int]) -> dict[int, float]:
    """Send a notification per number; gives when each call returned. PostgreSQL only."""
    sent: dict[int, float] = _on(url).notify(url, numbers)
    return sent
