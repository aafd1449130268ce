"""Procrastinate on our workloads. As a program it is a worker process that reports like `windlass.cli.bench.child`.

Settings, chosen to be its fastest with durable commits and its tables as they are:

- concurrency 100, as ours: its worker fetches one job by one statement and writes each end by another; only bodies and
  ends overlap, up to this number. `listen_notify` on, its default: else an idle worker looks every five seconds.
- A pool of 8 connections for those: the ends beside the fetches keep a few of them busy at a time. `tune.py` tries
  other numbers of both.
- Connections in autocommit: every statement of it is one call of a function, so BEGIN and COMMIT around it add two
  round trips and no guarantee. No check of a connection before each use, which is another one.
- Its tables keep finished jobs, its default, as ours do (`delete_jobs="never"`).
- uvloop, and its logging off.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Coroutine
from typing import Any

import psycopg
import uvloop
from procrastinate import App, PsycopgConnector
from psycopg_pool import AsyncConnectionPool

from benchmarks.peers.reports import PAYLOAD, Counted, differences, report, wait_for_go

logging.getLogger("procrastinate").setLevel(logging.CRITICAL)

DRAIN = 100
"""The concurrency."""
IDLE = 100
ENDS = True
CONNECTIONS = 8


def pool_without_checks(**options: Any) -> AsyncConnectionPool:
    return AsyncConnectionPool(**options | {"check": None})


async def autocommit(connection: psycopg.AsyncConnection) -> None:
    await connection.set_autocommit(True)


def open_app(url: str, connections: int) -> tuple[App, Any, Any]:
    """The application and its tasks `noop` and `stamp`, which do nothing here."""
    options = {"min_size": connections, "max_size": connections, "configure": autocommit}
    app = App(connector=PsycopgConnector(pool_factory=pool_without_checks, conninfo=url, **options))

    @app.task(name="noop")
    async def noop(payload: str) -> None: ...

    @app.task(name="stamp")
    async def stamp(number: int) -> None: ...

    return app, noop, stamp


# ---------------------------------------------------------------------- what the runner calls


def install(url: str) -> None:
    async def run() -> None:
        app, *_ = open_app(url, 1)
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    uvloop.run(run())


def enqueue(url: str, count: int, callers: int = 1) -> float:
    async def run() -> float:
        app, noop, _ = open_app(url, callers)

        async def call(number: int) -> None:
            for _ in range(number):
                await noop.defer_async(payload=PAYLOAD)

        async with app.open_async():
            await together(call(1) for _ in range(callers))
            began = time.monotonic()
            await together(call(count // callers) for _ in range(callers))
            return time.monotonic() - began

    return uvloop.run(run())


async def together(calls: Any) -> None:
    await asyncio.gather(*calls)


def enqueue_bulk(url: str, count: int, keyed_every: int) -> float:
    """`Task.batch_defer_async` gives all jobs the same options; the manager below it takes a lock for each of them."""

    async def run() -> float:
        app, noop, _ = open_app(url, 1)
        async with app.open_async():
            await noop.defer_async(payload=PAYLOAD)
            began = time.monotonic()
            plain = noop.configure().make_new_job(payload=PAYLOAD)
            keys = [f"k{number}" if keyed_every and number % keyed_every == 0 else None for number in range(count)]
            jobs = [plain if key is None else plain.evolve(queueing_lock=key) for key in keys]
            await app.job_manager.batch_defer_jobs_async(jobs)
            return time.monotonic() - began

    return uvloop.run(run())


def send(url: str, total: int, every: float) -> dict[int, float]:
    """A job each so many seconds; when each call returned."""

    async def run() -> dict[int, float]:
        app, _, stamp = open_app(url, 1)
        sent: dict[int, float] = {}
        async with app.open_async():
            next_at = time.monotonic()
            for number in range(total):
                next_at += every
                await asyncio.sleep(next_at - time.monotonic())
                await stamp.defer_async(number=number)
                sent[number] = time.monotonic()
        return sent

    return uvloop.run(run())


def waiting(url: str) -> int:
    return fetch(url, "SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo'")


def problems(url: str, count: int, bodies: int) -> list[str]:
    return differences(
        "Procrastinate",
        ("jobs", count, fetch(url, "SELECT count(*) FROM procrastinate_jobs")),
        ("succeeded", count, fetch(url, "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'")),
        ("started", count, fetch(url, "SELECT count(*) FROM procrastinate_events WHERE type = 'started'")),
        ("bodies", count, bodies),
    )


def fetch(url: str, query: str) -> int:
    with psycopg.connect(url) as session:
        return session.execute(query.encode()).fetchone()[0]


# ---------------------------------------------------------------------- the worker process


class Clock:
    """Starts with the first fetch and stops with the last end written: its start and stop are not measured."""

    def __init__(self, manager: Any) -> None:
        self.ended = Counted()
        self._fetch_job = manager.fetch_job
        self._finish_job = manager.finish_job
        self._reported = False
        manager.fetch_job = self.fetch_job
        manager.finish_job = self.finish_job

    def fetch_job(self, *args: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        if not self._reported:
            self._reported = True
            report("ready", rss=0)
        return self._fetch_job(*args, **options)

    async def finish_job(self, *args: Any, **options: Any) -> None:
        await self._finish_job(*args, **options)
        self.ended.add()


async def work(kind: str, url: str, concurrency: int, connections: int = CONNECTIONS) -> None:
    """`drain`: until nothing is left; `work`: until SIGTERM."""
    bodies = 0
    starts: list[tuple[int, float]] = []
    app, noop, stamp = open_app(url, connections)

    async def count(payload: str) -> None:
        nonlocal bodies
        bodies += 1

    async def note(number: int) -> None:
        nonlocal bodies
        starts.append((number, time.monotonic()))
        bodies += 1
        report("count", count=bodies)  # each: the runner waits for the last one

    noop.func, stamp.func = count, note
    async with app.open_async():
        clock = Clock(app.job_manager)
        await asyncio.to_thread(wait_for_go)
        await app.run_worker_async(concurrency=concurrency, listen_notify=True, wait=kind == "work")
    report("end", count=clock.ended.count, last=clock.ended.last, bodies=bodies, code=0, starts=starts, peak=0)


if __name__ == "__main__":
    uvloop.run(work(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
