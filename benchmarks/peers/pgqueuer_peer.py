"""PgQueuer on our workloads. As a program it is a worker process that reports like `windlass.cli.bench.child`.

Settings, chosen to be its fastest here (`tune.py` shows the trials): asyncpg in a pool, so that dequeues and
completions overlap; a batch size of 500; uvloop; default (durable) tables; its logging off; no periodic aggregation of
its log.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from benchmarks.peers.reports import differences, report, wait_for_go

logging.getLogger("pgqueuer").setLevel(logging.CRITICAL)

PAYLOAD = b"x" * 200
DRAIN = 500
"""The batch size."""
IDLE = 10
ENDS = True
CONNECTIONS = 4


# ---------------------------------------------------------------------- what the runner calls


def install(url: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    uvloop.run(run())


def enqueue(url: str, count: int, callers: int = 1) -> float:
    """A connection for each caller: a pool would reset it after every call."""

    async def run() -> float:
        connections = [await asyncpg.connect(url) for _ in range(callers)]

        async def call(connection: asyncpg.Connection, number: int) -> None:
            queries = Queries(AsyncpgDriver(connection))
            for _ in range(number):
                await queries.enqueue("noop", PAYLOAD)

        await asyncio.gather(*(call(connection, 1) for connection in connections))
        began = time.monotonic()
        await asyncio.gather(*(call(connection, count // callers) for connection in connections))
        seconds = time.monotonic() - began
        for connection in connections:
            await connection.close()
        return seconds

    return uvloop.run(run())


def enqueue_bulk(url: str, count: int, keyed_every: int) -> float:
    async def run() -> float:
        connection = await asyncpg.connect(url)
        queries = Queries(AsyncpgDriver(connection))
        await queries.enqueue("noop", PAYLOAD)
        began = time.monotonic()
        keys = [f"k{number}" if keyed_every and number % keyed_every == 0 else None for number in range(count)]
        await queries.enqueue(["noop"] * count, [PAYLOAD] * count, [0] * count, dedupe_key=keys)
        seconds = time.monotonic() - began
        await connection.close()
        return seconds

    return uvloop.run(run())


def send(url: str, total: int, every: float) -> dict[int, float]:
    """A job each so many seconds; when each call returned."""

    async def run() -> dict[int, float]:
        connection = await asyncpg.connect(url)
        queries = Queries(AsyncpgDriver(connection))
        sent: dict[int, float] = {}
        next_at = time.monotonic()
        for number in range(total):
            next_at += every
            await asyncio.sleep(next_at - time.monotonic())
            await queries.enqueue("stamp", str(number).encode())
            sent[number] = time.monotonic()
        await connection.close()
        return sent

    return uvloop.run(run())


def waiting(url: str) -> int:
    return fetch(url, "SELECT count(*) FROM pgqueuer")


def problems(url: str, count: int, bodies: int) -> list[str]:
    done = fetch(
        url, "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful' AND entrypoint IN ('noop', 'stamp')"
    )
    facts = (("left", 0, waiting(url)), ("logged as successful", count, done), ("bodies", count, bodies))
    return differences("PgQueuer", *facts)


def fetch(url: str, query: str) -> int:
    async def run() -> int:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    return uvloop.run(run())


# ---------------------------------------------------------------------- the worker process


class Clock:
    """Starts with the first dequeue and stops with the last completion written: its start and end are not measured."""

    def __init__(self, queries: Queries) -> None:
        self.last = 0.0
        self._dequeue = queries.dequeue
        self._log_jobs = queries.log_jobs
        self._reported = False
        queries.dequeue = self.dequeue  # type: ignore[method-assign]
        queries.log_jobs = self.log_jobs  # type: ignore[method-assign]

    async def dequeue(self, *args: Any, **options: Any) -> Any:
        if not self._reported:
            self._reported = True
            report("ready", rss=0)
        return await self._dequeue(*args, **options)

    async def log_jobs(self, *args: Any, **options: Any) -> None:
        await self._log_jobs(*args, **options)
        self.last = time.monotonic()


async def work(kind: str, url: str, batch: int) -> None:
    """`drain`: until nothing is left; `work`: until SIGTERM."""
    bodies = 0
    starts: list[tuple[int, float]] = []
    pool = await asyncpg.create_pool(url, min_size=CONNECTIONS, max_size=CONNECTIONS)
    queuer = PgQueuer(AsyncpgPoolDriver(pool))

    @queuer.entrypoint("noop")
    async def noop(job: Job) -> None:
        nonlocal bodies
        bodies += 1

    @queuer.entrypoint("stamp")
    async def stamp(job: Job) -> None:
        nonlocal bodies
        starts.append((int(job.payload or b"0"), time.monotonic()))
        bodies += 1
        report("count", count=bodies)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queuer.shutdown.set)
    clock = Clock(queuer.qm.queries)
    await asyncio.to_thread(wait_for_go)
    drain = kind == "drain"
    await queuer.qm.run(
        batch_size=batch,
        mode=QueueExecutionMode.drain if drain else QueueExecutionMode.continuous,
        log_aggregation_interval=timedelta(0),
    )
    report("end", count=bodies, last=clock.last, bodies=bodies, code=0, starts=starts, peak=0)


if __name__ == "__main__":
    uvloop.run(work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
