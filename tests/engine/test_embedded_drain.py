"""Draining a worker that lives in a program: from its own loop, from other threads, by closing, and in a hurry."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import IMPATIENT, LONG, Apps, Gate, query, threads_named, until
from windlass import (
    ConfigurationError,
    InvalidOptionError,
    JobStatus,
    NodeSettings,
    Settings,
    Windlass,
    WouldBlockLoopError,
)
from windlass.runtime import loops
from windlass.worker import Worker

PATIENT = Settings(node=NodeSettings(drain_timeout=600))
"""Only what a test does ends a drain of these."""


WORKERS: list[Worker] = []
"""The worker that these bodies try to drain."""


def drain_own_worker() -> str:
    try:
        WORKERS[0].drain()
    except ConfigurationError as error:
        return str(error)
    return "drained"


async def adrain_own_worker() -> str:
    try:
        await WORKERS[0].adrain()
    except ConfigurationError as error:
        return str(error)
    return "drained"


async def held(app: Windlass, gate: Gate) -> Any:
    """A job that runs until the gate is open."""
    handle = await app.bind(jobs.ahold, gate.name).aenqueue()
    await asyncio.to_thread(gate.wait_entered)
    return handle


async def opened_once_draining(worker: Worker, gate: Gate) -> None:
    node = worker.node
    assert node is not None
    await asyncio.to_thread(until, lambda: not node.poller.alive)
    gate.open()


async def test_adrain_in_an_async_worker_waits_for_running_jobs_and_claims_no_others(apps: Apps, gate: Gate):
    """J7.6: the node has left when it returns; what is enqueued then waits for another."""
    app = apps(allow=["tests.engine"])
    async with app.worker() as worker:
        running = await held(app, gate)
        opener = asyncio.create_task(opened_once_draining(worker, gate))
        assert await worker.adrain() is True
        await opener
        assert await running.astatus() is JobStatus.SUCCEEDED
        assert worker.node is None
        assert not app.has_worker
        later = await app.bind(jobs.anote, "later").aenqueue()
        assert await worker.adrain() is True, "nothing is left to drain"
    assert await later.astatus() is JobStatus.PENDING
    assert jobs.seen == []


async def test_drain_of_an_async_worker_from_a_thread_drains_it(apps: Apps, gate: Gate):
    """J7.6: the loop goes on meanwhile; the answer is that of the drain."""
    app = apps(allow=["tests.engine"])
    async with app.worker() as worker:
        running = await held(app, gate)
        assert await asyncio.to_thread(worker.drain, 0.01) is False
        assert worker.node is None
        job = await app.aget(running.id)
        assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


async def test_drain_on_the_workers_own_loop_is_refused_and_names_adrain(app: Windlass):
    """J7.6: it would wait for itself; nothing is drained."""
    add = app.job(jobs.aadd)
    async with app.worker() as worker:
        with pytest.raises(WouldBlockLoopError, match=r"await worker\.adrain\(\)"):
            worker.drain()
        with pytest.raises(WouldBlockLoopError, match=r"await app\.aclose\(\)"):
            app.close()
        assert await (await add.aenqueue(1, 2)).aresult(timeout=LONG) == 3


async def test_aclose_inside_an_async_worker_drains_it_first(apps: Apps, gate: Gate):
    """J7.6: the outcome is written before the store is closed, and leaving the block finds nothing to do."""
    app = apps(allow=["tests.engine"])
    async with app.worker() as worker:
        running = await held(app, gate)
        opener = asyncio.create_task(opened_once_draining(worker, gate))
        await app.aclose()
        await opener
    other = apps()
    assert other.get(running.id).status is JobStatus.SUCCEEDED
    assert [attempt.outcome for attempt in other.history(running.id)] == ["succeeded"]
    assert query(apps.url, "SELECT id FROM windlass_node") == []


def test_close_drains_a_worker_in_a_separate_thread(apps: Apps, gate: Gate):
    """J7.6: `app.close()` inside `with app.worker()`."""
    app = apps()
    hold = app.job(jobs.hold)
    with app.worker() as worker:
        running = hold.enqueue(gate.name)
        gate.wait_entered()
        opener = gate.open_once_draining(worker)
        app.close()
        opener.join()
    assert apps().get(running.id).status is JobStatus.SUCCEEDED


def test_a_job_cannot_drain_the_worker_it_runs_on(app: Windlass):
    """J7.6: it would wait for itself until it is stopped; the error names the way."""
    drain_own = app.job(drain_own_worker)
    adrain_own = app.job(adrain_own_worker)
    with app.worker() as worker:
        WORKERS.append(worker)
        try:
            for handle in (drain_own.enqueue(), adrain_own.enqueue()):
                said = handle.result(timeout=LONG)
                assert "windlass node drain" in said
        finally:
            WORKERS.clear()


# ---------------------------------------------------------------------------------------------------- how long it takes


@pytest.mark.parametrize("limit", [0.05, timedelta(milliseconds=50)])
def test_drain_timeout_of_a_worker_goes_before_the_setting(apps: Apps, gate: Gate, limit: Any):
    """J10.4: `app.worker(drain_timeout=…)`."""
    app = apps(settings=PATIENT, allow=["tests.engine"])
    ahold = app.job(jobs.ahold)
    with app.worker(drain_timeout=limit):
        handle = ahold.enqueue(gate.name)
        gate.wait_entered()
    assert handle.status() is JobStatus.PENDING


@pytest.mark.parametrize("wrong", [-1, "soon", float("nan")])
def test_a_drain_timeout_that_is_no_duration_is_refused(app: Windlass, wrong: Any):
    with pytest.raises(InvalidOptionError, match="drain_timeout"):
        app.worker(drain_timeout=wrong)


async def test_a_second_drain_shortens_the_first(apps: Apps, gate: Gate):
    """J7.6: both give the same answer."""
    app = apps(settings=PATIENT, allow=["tests.engine"])
    async with app.worker() as worker:
        await held(app, gate)
        first = asyncio.create_task(worker.adrain())
        await asyncio.sleep(0)
        assert await worker.adrain(timeout=0.01) is False
        assert await first is False


async def test_cancelling_a_drain_forces_it(apps: Apps, gate: Gate):
    """J7.6: a caller that cancels the drain gets a clean exit of the node: jobs released, signed off."""
    app = apps(settings=PATIENT, allow=["tests.engine"])
    async with app.worker() as worker:
        running = await held(app, gate)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(worker.adrain(), 0.05)
        assert worker.node is None
    job = await app.aget(running.id)
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)
    assert query(apps.url, "SELECT id FROM windlass_node") == []


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    """Ctrl-C as it is in a terminal: a program that a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_once_draining(worker: Worker) -> threading.Thread:
    """Press Ctrl-C once the worker claims no more; gives the thread that waits for that."""
    node = worker.node
    assert node is not None

    def wait_and_press() -> None:
        until(lambda: not node.poller.alive)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=wait_and_press)
    presser.start()
    return presser


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_while_an_embedded_worker_drains_forces_the_drain(apps: Apps, gate: Gate):
    """J7.6, J10.4: the job is released, the node signs off, and then the KeyboardInterrupt comes out."""
    app = apps(settings=PATIENT, allow=["tests.engine"])
    ahold = app.job(jobs.ahold)
    worker = app.worker().__enter__()
    handle = ahold.enqueue(gate.name)
    gate.wait_entered()
    presser = interrupt_once_draining(worker)
    with pytest.raises(KeyboardInterrupt):
        worker.__exit__(None, None, None)
    presser.join()
    assert (app.get(handle.id).status, app.get(handle.id).attempts) == (JobStatus.PENDING, 0)
    assert query(apps.url, "SELECT id FROM windlass_node") == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert list(threads_named("windlass-worker")) == [], "the loop's thread has ended too"


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_while_a_worker_on_the_main_loop_drains_forces_the_drain(apps: Apps, gate: Gate):
    """J7.6, J10.4: a server's own handler receives the signal too, as uvicorn's does."""
    app = apps(settings=PATIENT, allow=["tests.engine"])
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))

    async def serve() -> Any:
        async with app.worker() as worker:
            running = await held(app, gate)
            presser = interrupt_once_draining(worker)
        await asyncio.to_thread(presser.join)
        return running

    try:
        with asyncio.Runner() as runner:
            running = runner.run(serve())
    finally:
        signal.signal(signal.SIGINT, before)
    assert received == [signal.SIGINT]
    assert app.get(running.id).status is JobStatus.PENDING


# ---------------------------------------------------------------------------------------------------- what is logged


def drain_lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records if record.name == "windlass.worker"]


def test_a_drain_logs_once_how_many_jobs_it_waits_for_and_until_when(
    app: Windlass, gate: Gate, caplog: pytest.LogCaptureFixture
):
    """J10.4: and that all of them have finished."""
    hold = app.job(jobs.hold)

    def open_at_warning() -> None:
        until(lambda: "draining" in caplog.text)
        gate.open()

    with caplog.at_level(logging.INFO, "windlass.worker"):
        opener = threading.Thread(target=open_at_warning)
        with app.worker(drain_timeout=500):
            hold.enqueue(gate.name)
            gate.wait_entered()
            opener.start()
        opener.join()
    (level, waits), (other, ended) = drain_lines(caplog)
    assert (level, other) == (logging.WARNING, logging.INFO)
    assert waits.startswith("draining: 1 job runs, waiting until ")
    assert "500 s; node.drain_timeout" in waits
    assert ended == "drained: all running jobs have finished"


def test_a_forced_drain_logs_how_many_jobs_were_released(apps: Apps, gate: Gate, caplog: pytest.LogCaptureFixture):
    """J10.4."""
    app = apps(settings=IMPATIENT)
    ahold = app.job(jobs.ahold)
    with caplog.at_level(logging.INFO, "windlass.worker"), app.worker():
        handles = [ahold.enqueue(gate.name) for _ in range(2)]
        until(lambda: {handle.status() for handle in handles} == {JobStatus.RUNNING})
        gate.wait_entered()
    last = drain_lines(caplog)[-1]
    assert last == (
        logging.WARNING,
        "drain forced: 0 of 2 running jobs finished, 2 stopped and released to run again",
    )


def test_a_drain_with_nothing_to_wait_for_logs_nothing(app: Windlass, caplog: pytest.LogCaptureFixture):
    add = app.job(jobs.add)
    with caplog.at_level(logging.INFO, "windlass.worker"), app.worker():
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
    assert drain_lines(caplog) == []


# -------------------------------------------------------------------------------------------------- a loop that is gone


def test_a_worker_whose_loop_has_ended_cannot_drain_and_logs_that(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J7.6: the answer is False, not a wait for ever; its lease runs out by itself."""
    app.job(jobs.add)
    loop = asyncio.new_event_loop()
    worker = app.worker()
    loop.run_until_complete(worker.__aenter__())
    assert worker.drain() is False
    assert "ended before the worker was left" in caplog.text
    assert not app.has_worker
    loops.close(loop)
