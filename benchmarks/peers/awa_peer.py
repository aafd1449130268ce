"""Awa (awa-pg: its engine in Rust, jobs in Python) on our workloads. As a program it is a worker process.

Settings, chosen to be its fastest with durable commits:

- Its queue storage, the engine of new installations, with the number of slots it has by default.
- 500 workers of one queue: a claim takes as many jobs as workers are free, so this is its batch size; bodies run on the
  event loop. One claimer, its default; it advises to measure 2 and 4 of them on a busy queue. `tune.py` tries these,
  and other numbers of workers.
- Slots of its queue storage change every 60 s, not every second: rows of completed jobs are deleted after that, and the
  end of a drain is read from them. It saves it some maintenance.
- 20 connections and a poll every 50 ms beside its notifications, as in its own benchmark; uvloop.
- Bulk calls by COPY straight into the queue storage (`enqueue_many_copy`). Options for uniqueness are those of a whole
  call, so jobs with keys are a second call, unique by their arguments.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from dataclasses import dataclass

import psycopg
import uvloop
from awa import AsyncClient, Job

from benchmarks.peers.reports import PAYLOAD, Counted, differences, report, wait_for_go

DRAIN = 500
"""How many workers."""
IDLE = 100
ENDS = False
CLAIMERS = 1
CONNECTIONS = 20
POLL_MS = 50
ROTATE_MS = 60_000
QUEUE = "bench"
LONGEST_START = 2.0
LONGEST_STOP_MS = 30_000


@dataclass
class Noop:
    payload: str


@dataclass
class Stamp:
    number: int


# ---------------------------------------------------------------------- what the runner calls


def install(url: str) -> None:
    async def run() -> None:
        async with AsyncClient(url) as client:
            await client.migrate()
            await client.install_queue_storage()

    uvloop.run(run())


def enqueue(url: str, count: int, callers: int = 1) -> float:
    async def run() -> float:
        job = Noop(PAYLOAD)
        async with AsyncClient(url, max_connections=callers) as client:

            async def call(number: int) -> None:
                for _ in range(number):
                    await client.insert(job, queue=QUEUE)

            await asyncio.gather(*(call(1) for _ in range(callers)))
            began = time.monotonic()
            await asyncio.gather(*(call(count // callers) for _ in range(callers)))
            return time.monotonic() - began

    return uvloop.run(run())


def enqueue_bulk(url: str, count: int, keyed_every: int) -> float:
    async def run() -> float:
        async with AsyncClient(url) as client:
            await client.insert(Noop(PAYLOAD), queue=QUEUE)
            began = time.monotonic()
            keyed = range(0, count, keyed_every) if keyed_every else range(0)
            await client.enqueue_many_copy([Noop(PAYLOAD)] * (count - len(keyed)), queue=QUEUE)
            if keyed:
                jobs = [Noop(f"{number:0{len(PAYLOAD)}}") for number in keyed]
                await client.enqueue_many_copy(jobs, queue=QUEUE, unique_opts={"by_args": True})
            return time.monotonic() - began

    return uvloop.run(run())


def send(url: str, total: int, every: float) -> dict[int, float]:
    """A job each so many seconds; when each call returned."""

    async def run() -> dict[int, float]:
        sent: dict[int, float] = {}
        async with AsyncClient(url) as client:
            next_at = time.monotonic()
            for number in range(total):
                next_at += every
                await asyncio.sleep(next_at - time.monotonic())
                await client.insert(Stamp(number), queue=QUEUE)
                sent[number] = time.monotonic()
        return sent

    return uvloop.run(run())


def waiting(url: str) -> int:
    return int(fetch(url, "SELECT count(*) FROM awa.jobs WHERE state = 'available'"))


def problems(url: str, count: int, bodies: int) -> list[str]:
    """Rows of completed jobs are deleted with their slot, and counted then."""
    left = fetch(url, "SELECT count(*) FROM awa.jobs WHERE state = 'completed'")
    pruned = fetch(url, "SELECT coalesce(sum(pruned_completed_count), 0) FROM awa.queue_terminal_rollups")
    return differences(
        "Awa",
        ("completed", count, int(left + pruned)),
        ("not completed", 0, int(fetch(url, "SELECT count(*) FROM awa.jobs WHERE state <> 'completed'"))),
        ("attempted again", 0, int(fetch(url, "SELECT count(*) FROM awa.jobs WHERE attempt > 1"))),
        ("bodies", count, bodies),
    )


def fetch(url: str, query: str) -> float:
    with psycopg.connect(url) as session:
        return session.execute(query.encode()).fetchone()[0]


# ---------------------------------------------------------------------- the worker process


def last_end(url: str) -> float:
    """When the last job ended by its row, on our clock: the engine writes ends without us, and stores their times.

    The time is from just before the commit, which is in its favour by one commit.
    """
    ago = fetch(url, "SELECT extract(epoch FROM clock_timestamp() - max(finalized_at)) FROM awa.jobs")
    return time.monotonic() - float(ago or 0)  # 0: none is left, after an idle time


class Ready:
    """Reported once: of a drain when the first body runs, since a started worker first waits for its poll.

    That leaves one claim of many out of the time, in its favour: compare drains of thousands.
    """

    def __init__(self) -> None:
        self._reported = False

    def report(self) -> None:
        if not self._reported:
            self._reported = True
            report("ready", rss=0)


async def work(kind: str, url: str, workers: int, claimers: int = CLAIMERS) -> None:
    """Until SIGTERM, for `drain` and `work`."""
    ready, bodies, stopped = Ready(), Counted(), asyncio.Event()
    starts: list[tuple[int, float]] = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with AsyncClient(url, max_connections=CONNECTIONS) as client:

        @client.task(Noop, queue=QUEUE)
        async def noop(job: Job[Noop]) -> None:
            ready.report()
            bodies.add()

        @client.task(Stamp, queue=QUEUE)
        async def stamp(job: Job[Stamp]) -> None:
            starts.append((job.args.number, time.monotonic()))
            bodies.add()

        await asyncio.to_thread(wait_for_go)
        queue = {"name": QUEUE, "max_workers": workers, "claimers": claimers}
        await client.start([queue], poll_interval_ms=POLL_MS, queue_storage_queue_rotate_interval_ms=ROTATE_MS)
        # One of two may get nothing of a small drain, and the runner waits for both.
        asyncio.get_running_loop().call_later(LONGEST_START if kind == "drain" else 0, ready.report)
        reporter = asyncio.create_task(report_counts(bodies))
        await stopped.wait()
        reporter.cancel()
        await client.shutdown(timeout_ms=LONGEST_STOP_MS)  # writes what has ended
    last = last_end(url)
    report("end", count=bodies.count, last=last, bodies=bodies.count, code=0, starts=starts, peak=0)


async def report_counts(bodies: Counted) -> None:
    """Often: the runner stops the workers when all bodies have run."""
    while True:
        await asyncio.sleep(0.05)
        report("count", count=bodies.count)


if __name__ == "__main__":
    uvloop.run(work(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
