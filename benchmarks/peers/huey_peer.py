"""Huey on SQLite, on our W3. As a program it is a consumer that reports like `windlass.cli.bench.child`.

Settings, chosen to be its fastest here with durable commits (`tune.py` shows the trials): fsync on, as ours; four
worker threads; no results, no periodic tasks, its logging off.
"""

from __future__ import annotations

import itertools
import logging
import sys
import threading
import time
from typing import Any

from huey import SqliteHuey

from benchmarks.peers.reports import differences, report, wait_for_go

PAYLOAD = "x" * 200
WORKERS = 4

logging.getLogger("huey").setLevel(logging.CRITICAL)


def open_huey(url: str) -> tuple[SqliteHuey, Any, threading.Event, list[int]]:
    """The queue, its no-op task, and an event that is set when so many ran."""
    huey = SqliteHuey("bench", filename=url.removeprefix("sqlite:///"), fsync=True, results=False)
    over = threading.Event()
    expected = [0]
    bodies = itertools.count(1)

    @huey.task(name="noop")
    def noop(payload: str) -> None:
        if next(bodies) == expected[0]:
            over.set()

    return huey, noop, over, expected


def fill(url: str, count: int) -> None:
    """Store waiting tasks, past Huey's own call, which commits each: filling is not what is measured."""
    huey, noop, _, _ = open_huey(url)
    storage = huey.storage
    with storage.db(commit=True) as cursor:
        for _ in range(count):
            cursor.execute(
                "insert into task (queue, data, priority) values (?, ?, ?)",
                (storage.name, huey.serialize_task(noop.s(PAYLOAD)), 0),
            )
    storage.close()


def problems(url: str, count: int, bodies: int) -> list[str]:
    huey, *_ = open_huey(url)
    left = huey.pending_count()
    huey.storage.close()
    facts = (("left", 0, left), ("bodies", count, bodies))
    return differences("Huey", *facts)


def drain(url: str, count: int, workers: int = WORKERS) -> None:
    huey, _, over, expected = open_huey(url)
    expected[0] = count
    consumer = huey.create_consumer(workers=workers, periodic=False, initial_delay=0.001, check_worker_health=False)
    wait_for_go()
    report("ready", rss=0)
    consumer.start()
    over.wait(300)
    last = time.monotonic()
    consumer.stop(graceful=True)
    report("end", count=count, last=last, bodies=count if over.is_set() else -1, code=0, starts=[], peak=0)


if __name__ == "__main__":
    from benchmarks.peers.huey_peer import (
        drain as run,
    )  # Huey names a task by its module, which must not be __main__ in one process only

    run(sys.argv[2], int(sys.argv[3]), int(sys.argv[1]))
