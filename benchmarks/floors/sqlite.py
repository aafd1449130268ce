"""The floor on SQLite: the dialect's plans on one bare connection, which may be the only writer anyway."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from benchmarks.floors.rows import LEASE_US, LEVEL, NODE, QUEUE, ending, new_rows
from windlass.domain.clock import SystemClock, monotonic
from windlass.stores.claim_order import ClaimRequest, Head
from windlass.stores.plan import Plan, drive
from windlass.stores.plans import claims, cluster, jobs
from windlass.stores.sqlite.dialect import SqliteDialect
from windlass.stores.sqlite.files import Checkpoints, WriteLock, connect
from windlass.stores.sqlite.session import Session

BOOST_US = 900_000_000

T = TypeVar("T")


class _Store:
    """One durable connection, as our writer has it."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = WriteLock(path)
        self._session = Session.of_writer(connection)
        self._checkpoints = Checkpoints(connection, path)

    def run(self, plan: Plan[T]) -> T:
        """Run a plan in a transaction."""
        with self._lock.held():
            self._connection.execute("BEGIN IMMEDIATE")
            result = drive(plan, next(plan), self._session.execute)
            self._connection.execute("COMMIT")
            self._checkpoints.after_commit()
        return result

    def close(self) -> None:
        """Close under the lock: the last connection to close checkpoints."""
        with self._lock.held():
            self._connection.close()
        self._lock.close()


@contextmanager
def _store(url: str) -> Iterator[_Store]:
    path = url.removeprefix("sqlite:///")
    store = _Store(path, connect(path, "FULL", SystemClock().micros))
    try:
        yield store
    finally:
        store.close()


def drain(url: str, batch: int, ready: Callable[[], None], progress: Callable[[int], None]) -> None:
    """Claim a batch, complete it, until nothing is left; `ready` is called once connected."""
    dialect = SqliteDialect()
    node = NODE._replace(id=f"{NODE.id}-{os.getpid()}")
    request = ClaimRequest(node.id, [Head(QUEUE, LEVEL, 0)], batch, batch, BOOST_US)
    with _store(url) as store:
        store.run(cluster.register(dialect, node, LEASE_US))
        ready()
        while claimed := store.run(claims.claim(dialect, request)).claims:
            store.run(jobs.apply(dialect, [ending(claim.job_id, claim.fence) for claim in claimed]))
            progress(len(claimed))


def enqueue(url: str, count: int, at_a_time: int) -> float:
    """Insert `at_a_time` rows per transaction."""
    dialect = SqliteDialect()
    with _store(url) as store:
        began = monotonic()
        for _ in range(count // at_a_time):
            store.run(jobs.submit(dialect, [new_rows(at_a_time)], []))
        return monotonic() - began


def enqueue_bulk(url: str, count: int, keyed_every: int) -> float:
    """Insert all rows in one transaction."""
    rows = new_rows(count, keyed_every)
    with _store(url) as store:
        began = monotonic()
        store.run(jobs.submit(SqliteDialect(), [rows], [QUEUE]))
        return monotonic() - began
