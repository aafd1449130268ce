"""The floor on PostgreSQL: two connections that overlap, one claims, one completes; arrays built by joining text.

The statements and their parameters are those of the dialect, taken from its plans once and then filled in by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader

from benchmarks.floors.rows import LEASE_US, LEVEL, NODE, QUEUE, ending, new_rows
from windlass.cli.bench.jobs import loop_factory
from windlass.domain.clock import monotonic
from windlass.domain.identity import new_job_id
from windlass.stores.claim_order import ClaimRequest, Head
from windlass.stores.plan import Plan, Step, drive
from windlass.stores.plans import cluster, jobs
from windlass.stores.postgres.dialect import PostgresDialect
from windlass.stores.postgres.session import Statements, execute, prepare_connection
from windlass.stores.postgres.thread_wire import ThreadWire
from windlass.stores.postgres.url import conninfo
from windlass.stores.postgres.wire import completed

BOOST_US = 900_000_000
AHEAD = 2
"""Batches that may be claimed before the first of them is completed."""
CHANNEL = "windlass_bench"

Row = Sequence[Any]


class _TextLoader(Loader):
    """Ids as the text they come as."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


def drain(url: str, batch: int, ready: Callable[[], None], progress: Callable[[int], None]) -> None:
    """Claim on one connection, complete on another, until nothing is left; `ready` is called once connected."""
    with psycopg.connect(url, autocommit=True) as connection:
        node = NODE._replace(id=f"{NODE.id}-{connection.info.backend_pid}")
        _run(connection, cluster.register(PostgresDialect(), node, LEASE_US))
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_drain(url, node.id, batch, ready, progress))


async def _drain(url: str, node: str, batch: int, ready: Callable[[], None], progress: Callable[[int], None]) -> None:
    claimed: asyncio.Queue[Sequence[Row]] = asyncio.Queue(AHEAD)
    async with _connection(url) as claimer, _connection(url) as completer:
        ready()
        claiming = asyncio.ensure_future(_claim(claimer, node, batch, claimed))
        await _complete(completer, claimed, progress)
        await claiming


async def _claim(
    connection: psycopg.AsyncConnection[Any], node: str, batch: int, claimed: asyncio.Queue[Sequence[Row]]
) -> None:
    request = ClaimRequest(node, [Head(QUEUE, LEVEL, 0)], batch, batch, BOOST_US)
    step = next(PostgresDialect().claim(request, None))
    text = _text(step)
    rows: Sequence[Row] = ()
    while True:
        rows = await (await connection.execute(text, step.params)).fetchall()
        await claimed.put(rows)
        if not rows:
            return


async def _complete(
    connection: psycopg.AsyncConnection[Any], claimed: asyncio.Queue[Sequence[Row]], progress: Callable[[int], None]
) -> None:
    step = next(PostgresDialect().finish([ending(new_job_id(), 1)], alone=True))
    text = _text(step)
    while True:
        rows = await claimed.get()
        if not rows:
            return
        await connection.execute(text, _filled(step.params, rows))
        progress(len(rows))


def _filled(sample: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """The parameters of one job made to those of many: ids and fences are theirs, everything else is the same."""
    count = len(rows)
    filled: dict[str, Any] = {}
    for name, value in sample.items():
        if name == "ids":
            filled[name] = "{" + ",".join([row[0] for row in rows]) + "}"
        elif name == "fences":
            filled[name] = "{" + ",".join([str(row[1]) for row in rows]) + "}"
        elif isinstance(value, str) and value.startswith("{"):
            filled[name] = "{" + ",".join([value[1:-1]] * count) + "}"
        else:
            filled[name] = count if value == 1 else value
    return filled


def enqueue(url: str, count: int, at_a_time: int) -> float:
    """Insert `at_a_time` rows per statement, each committed before the next."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_enqueue(url, count, at_a_time))


async def _enqueue(url: str, count: int, at_a_time: int) -> float:
    dialect = PostgresDialect()
    async with _connection(url) as connection:
        began = monotonic()
        for _ in range(count // at_a_time):
            step = next(dialect.insert_jobs(new_rows(at_a_time), alone=True, notification=None))
            await connection.execute(_text(step), step.params)
        return monotonic() - began


def enqueue_bulk(url: str, count: int, keyed_every: int) -> float:
    """The plan of a bulk submission on a bare connection, its rows made before."""
    rows = new_rows(count, keyed_every)
    with psycopg.connect(url, autocommit=True) as connection:
        began = monotonic()
        with connection.transaction():
            _run(connection, jobs.submit(PostgresDialect(), [rows], [QUEUE]))
        return monotonic() - began


@contextmanager
def listening(url: str, count: int) -> Iterator[Iterator[str]]:
    """LISTEN on a bare connection."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"LISTEN {CHANNEL}")
        yield (notification.payload for notification in connection.notifies(stop_after=count))


def notify(url: str, numbers: Iterable[int]) -> dict[int, float]:
    """NOTIFY on a bare connection."""
    sent: dict[int, float] = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for number in numbers:
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(number)))
            sent[number] = monotonic()
    return sent


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    connection: psycopg.AsyncConnection[Any] = await psycopg.AsyncConnection.connect(
        conninfo(url, pooled=False), autocommit=True
    )
    async with connection:
        prepare_connection(connection)
        connection.prepare_threshold = 2
        connection.adapters.register_loader("uuid", _TextLoader)
        yield connection


_statements = Statements()


def _text(step: Step) -> Any:
    return _statements.text(_statements.query(step), step.literals)


def _run(connection: psycopg.Connection[Any], plan: Plan[Any]) -> None:
    wire = ThreadWire(connection, prepares=True)
    drive(plan, next(plan), lambda step: completed(execute(wire, _statements, step, {})))
