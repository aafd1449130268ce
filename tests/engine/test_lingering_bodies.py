"""Bodies on threads that outlive their attempts or their worker: limits count them until they have ended."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import IMPATIENT, LONG, Apps, Gate, query, settled, until
from windlass import JobStatus, NodeSettings, Settings, Windlass

LIMIT = 2


class Bodies:
    """Counts the bodies that are at work at once; each ends when the test lets it."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self._lock = threading.Lock()
        self.now = self.most = self.entered = 0

    def work(self) -> None:
        with self._lock:
            self.now += 1
            self.entered += 1
            self.most = max(self.most, self.now)
        end = self.open
        try:
            while not end.is_set():
                with contextlib.suppress(BaseException):  # the worst body there can be: no interrupt ends it
                    end.wait(LONG)
        finally:
            with self._lock:
                self.now -= 1


COUNTED: list[Bodies] = []


def stubborn() -> str:
    COUNTED[0].work()
    return "late"


@pytest.fixture
def bodies() -> Iterator[Bodies]:
    made = Bodies()
    COUNTED.append(made)
    yield made
    made.open.set()
    COUNTED.clear()


def limited(apps: Apps, **node: Any) -> Windlass:
    app = apps(settings=Settings(node=NodeSettings(drain_timeout=0.05, **node)), allow=["tests.engine"])
    app.configure_resource("stripe", LIMIT)
    return app


def in_use(app: Windlass) -> int:
    return sum(resource.in_use for resource in app.resources())


def test_a_limit_set_while_a_job_runs_counts_its_thread_until_it_has_ended(apps: Apps, bodies: Bodies):
    """J1.7, J6.2: the job is over by its timeout, its body is not: the next one waits for it."""
    app = apps(allow=["tests.engine"])
    with app.worker():
        late = app.job(queue="mail", timeout=3)(stubborn).enqueue()
        until(lambda: bodies.entered == 1)
        app.limit_queue("mail", concurrency=1)
        assert settled(app, late.id).error_class == "JobTimeoutError"
        following = app.job(queue="mail")(jobs.note).enqueue("followed")
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3, "the worker goes on"
        assert (bodies.now, following.status()) == (1, JobStatus.PENDING)
        assert app.explain(following.id).code == "queue_full"
        bodies.open.set()
        assert following.result(timeout=LONG) == "followed"


def test_bodies_never_exceed_the_limit_when_a_worker_is_restarted(apps: Apps, bodies: Bodies):
    """J6.2, J7.6: a forced drain releases the jobs, not the permits of threads that go on."""
    app = limited(apps)
    job = app.job(resource="stripe")(stubborn)
    handles = [job.enqueue() for _ in range(2 * LIMIT)]
    with app.worker():
        until(lambda: bodies.entered == LIMIT)
    assert {handle.status() for handle in handles} == {JobStatus.PENDING}
    assert in_use(app) == LIMIT
    with app.worker():
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
        assert {handle.status() for handle in handles} == {JobStatus.PENDING}
        assert {app.explain(handle.id).code for handle in handles} == {"permit_full"}
        bodies.open.set()
        assert [handle.result(timeout=LONG) for handle in handles] == ["late"] * len(handles)
    assert bodies.most == LIMIT
    until(lambda: in_use(app) == 0)
    until(lambda: query(apps.url, "SELECT id FROM windlass_node") == [])


async def test_the_same_holds_on_the_callers_loop(apps: Apps, bodies: Bodies):
    """J6.2, J7.6: `async with`, where the loop goes on when the worker is left."""
    app = limited(apps)
    job = app.job(resource="stripe")(stubborn)
    handles = [await job.aenqueue() for _ in range(LIMIT + 1)]
    async with app.worker():
        await asyncio.to_thread(until, lambda: bodies.entered == LIMIT)
    async with app.worker():
        assert {await handle.astatus() for handle in handles} == {JobStatus.PENDING}
        bodies.open.set()
        for handle in handles:
            assert await handle.aresult(timeout=LONG) == "late"
    assert bodies.most == LIMIT


def test_a_node_lives_on_for_its_threads_and_is_not_lost(apps: Apps, bodies: Bodies):
    """J6.2, J7.2: it beats as long as they go on, claims nothing, and signs off by itself."""
    app = limited(apps, heartbeat_interval=0.05, missed_heartbeats=20)
    job = app.job(resource="stripe")(stubborn)
    with app.worker() as worker:
        job.enqueue()
        until(lambda: bodies.entered == 1)
        node = worker.node.id if worker.node is not None else ""
    assert [found.id for found in app.nodes()] == [node]
    beaten = app.nodes()[0].heartbeat_at
    until(lambda: app.nodes()[0].heartbeat_at > beaten)
    bodies.open.set()
    until(lambda: app.nodes() == [])
    assert in_use(app) == 0


def test_a_node_whose_threads_hold_nothing_signs_off_at_once(apps: Apps, gate: Gate):
    """J7.6: a feature that a job does not use costs it nothing."""
    app = apps(settings=IMPATIENT, allow=["tests.engine"])
    with app.worker():
        app.job(jobs.sleep_then_return).enqueue(gate.name)
        gate.wait_entered()
    assert app.nodes() == []


def test_a_closed_application_keeps_counting_its_threads(apps: Apps, bodies: Bodies):
    """J6.2, J10.5: its threads go on after `close`, and so do their permits; nothing is left open in the end."""
    app, other = limited(apps), apps(allow=["tests.engine"])
    app.job(resource="stripe")(stubborn).enqueue()
    with app.worker():
        until(lambda: bodies.entered == 1)
    app.close()
    assert in_use(other) == 1
    bodies.open.set()
    until(lambda: in_use(other) == 0)
    until(lambda: other.nodes() == [])


def test_a_store_in_memory_that_is_closed_keeps_nothing(bodies: Bodies):
    app = Windlass("sqlite://", settings=IMPATIENT, allow=["tests.engine"])
    app.configure_resource("stripe", 1)
    app.job(resource="stripe")(stubborn).enqueue()
    with app.worker():
        until(lambda: bodies.entered == 1)
    assert in_use(app) == 1
    app.close()
    bodies.open.set()
    assert app.nodes() == []
    app.close()
