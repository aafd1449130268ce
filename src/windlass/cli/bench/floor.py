"""The floor: the store's own statements on bare connections, without the engine. What no engine on them can beat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from windlass.cli.bench import floor_postgres, floor_sqlite

Progress = Callable[[int], None]


def is_sqlite(url: str) -> bool:
    """Whether a URL names a SQLite file."""
    return url.startswith("sqlite")


def drain(url: str, batch: int, progress: Progress) -> None:
    """Claim and complete everything that waits, `batch` at a time."""
    (floor_sqlite if is_sqlite(url) else floor_postgres).drain(url, batch, progress)


def enqueue(url: str, count: int, at_a_time: int) -> float:
    """Store jobs, each statement committed before the next one; gives the seconds."""
    return (floor_sqlite if is_sqlite(url) else floor_postgres).enqueue(url, count, at_a_time)


def enqueue_bulk(url: str, count: int, keyed_every: int) -> float:
    """Store jobs in one transaction; gives the seconds."""
    return (floor_sqlite if is_sqlite(url) else floor_postgres).enqueue_bulk(url, count, keyed_every)


@contextmanager
def listening(url: str) -> Iterator[Iterator[str]]:
    """Hear notifications; PostgreSQL only."""
    with floor_postgres.listening(url) as payloads:
        yield payloads


def notify(url: str, numbers: Iterator[int]) -> dict[int, float]:
    """Send a notification per number; gives when each call returned. PostgreSQL only."""
    return floor_postgres.notify(url, numbers)
