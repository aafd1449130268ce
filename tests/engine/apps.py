"""What tests of the engine share: applications on a store, waiting for a condition, and looking into the tables."""

import asyncio
import importlib
import sqlite3
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar
from uuid import UUID, uuid4

import psycopg

from windlass import Attempt, Job, JobHandle, JobStatus, NodeSettings, PollerSettings, Settings, Windlass
from windlass.domain.clock import monotonic
from windlass.worker import Worker

T = TypeVar("T")

LONG = 90.0
"""Seconds after which a test gives up waiting; far longer than anything it waits for."""

NEVER_POLLS = PollerSettings(burst_delay=600, min_delay=600, max_delay=600, deep_idle_delay=600)
"""With these, only a wakeup or a known due time makes a worker look for work."""
ONLY_WAKEUPS = Settings(poller=NEVER_POLLS, node=NodeSettings(heartbeat_interval=60))
IMPATIENT = Settings(node=NodeSettings(drain_timeout=0.1))
"""Drains give running bodies next to no time."""

TABLES = (
    *("job", "hot", "done", "attempt", "key", "live_key", "job_tag", "dead_letter", "queue", "lane", "node", "alert"),
    *("archive", "permit", "gate", "freed", "lease", "stat_delta", "stat", "progress", "job_log", "dead_letter_group"),
    *("audit", "flow", "group", "group_delta", "operation", "schedule", "tick", "declared"),
)


class Apps:
    """Makes applications on one store, and closes them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._made: list[Windlass] = []

    def __call__(self, **options: Any) -> Windlass:
        """A further application on the same store, which is migrated."""
        app = Windlass(self.url, **{"settings": Settings(), **options})
        self._made.append(app)
        app.migrate()
        return app

    def close(self) -> None:
        for app in self._made:
            app.close()


def on_loop(worker: Worker, work: Coroutine[Any, Any, T]) -> T:
    """Have a worker's loop do something, and wait for it."""
    assert worker.node is not None
    return asyncio.run_coroutine_threadsafe(work, worker.node.slots._loop).result(LONG)


def until(condition: Callable[[], T], timeout: float = LONG) -> T:
    """Wait until a condition holds, and give what it gave."""
    end = monotonic() + timeout
    pause = threading.Event()
    while not (value := condition()):
        assert monotonic() < end, "the awaited condition never held"
        pause.wait(0.01)
    return value


def settled(app: Windlass, job_id: UUID) -> Job:
    """Wait for a job's end, whatever it is, and give the job."""
    app.handle(job_id).join(timeout=LONG)
    return app.get(job_id)


def waiting_again(app: Windlass, job_id: UUID, attempts: int) -> Job:
    """Wait until a job has that many attempts behind it and is back in its queue."""

    def look() -> Job | None:
        job = app.get(job_id)
        return job if job.status is JobStatus.PENDING and job.attempts == attempts else None

    job = until(look)
    assert job is not None
    return job


def query(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a statement, read past Windlass."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(sql).fetchall()
    with psycopg.connect(url) as server:
        return server.execute(sql.encode()).fetchall()


def count(url: str, table: str) -> int:
    """How many rows a table of Windlass has."""
    return int(query(url, f"SELECT count(*) FROM windlass_{table}")[0][0])


def everything_stored(url: str) -> str:
    """Every value of every table, as one text to search in."""
    return repr({table: query(url, f"SELECT * FROM windlass_{table}") for table in TABLES})


class Gate:
    """Holds a body until the test lets it go."""

    def __init__(self) -> None:
        self.name = uuid4().hex
        self.entered = threading.Event()
        self.opened = threading.Event()

    def wait_entered(self) -> None:
        assert self.entered.wait(LONG), "the body was not entered"

    def open(self) -> None:
        self.opened.set()

    def open_once_draining(self, worker: Worker, also: Callable[[], bool] = lambda: True) -> threading.Thread:
        """Let it go when the worker claims no more and this holds, too; gives the thread that waits for that."""
        node = worker.node
        assert node is not None

        def wait_and_open() -> None:
            until(lambda: not node.poller.alive)
            until(also)
            self.open()

        opener = threading.Thread(target=wait_and_open)
        opener.start()
        return opener


class Shop:
    """A program of its own: a module written by the test, imported under a name no other test uses."""

    def __init__(self, folder: Path) -> None:
        self.name = f"shop_{uuid4().hex[:12]}"
        self._file = folder / f"{self.name}.py"

    def load(self, source: str) -> ModuleType:
        """Write the module and import it, in place of what it was before: a deployment."""
        self._file.write_text(source)
        self.unload()
        return importlib.import_module(self.name)

    def unload(self) -> None:
        sys.modules.pop(self.name, None)
        importlib.invalidate_caches()
        for stale in self._file.parent.glob(f"__pycache__/{self.name}.*"):
            stale.unlink()


def tried(app: Windlass, handle: JobHandle[Any]) -> list[Attempt]:
    """A job's history without its releases: on a busy machine a claim may wait too long for a slot, and is released."""
    return [attempt for attempt in app.history(handle.id) if attempt.outcome != "released"]


def threads_named(prefix: str) -> Iterator[str]:
    """Names of living threads that start like this."""
    return (thread.name for thread in threading.enumerate() if thread.name.startswith(prefix))
