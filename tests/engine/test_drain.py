"""Leaving: a node's name, what a drain hands back, what it lets finish, and what it cuts off."""

import asyncio
import os
import socket
import threading

import pytest

from tests.engine import jobs
from tests.engine.apps import IMPATIENT, LONG, Apps, Gate, query, settled, until
from windlass import JobStatus, Windlass


def test_a_node_id_of_host_pid_and_random_part_is_new_at_each_start(app: Windlass, apps: Apps):
    """J7.1: the name is in the node table while the node lives, and on every job it runs."""
    who = app.job(jobs.describe_myself)
    names = []
    for _ in range(2):
        with app.worker() as worker:
            assert worker.node is not None
            names.append(worker.node.id)
            handle = who.enqueue()
            assert handle.result(timeout=LONG)["node"] == names[-1]
            rows = query(apps.url, "SELECT id, host, pid, state FROM windlass_node")
            assert rows == [(names[-1], socket.gethostname(), os.getpid(), "alive")]
        assert query(apps.url, "SELECT id FROM windlass_node") == []
        assert app.get(handle.id).node == names[-1]
        assert app.history(handle.id)[0].node == names[-1]
    assert len(set(names)) == 2
    for name in names:
        assert socket.gethostname() in name
        assert str(os.getpid()) in name


def test_nodes_are_equal_and_share_the_work_of_one_database(apps: Apps):
    """J7.1: two applications, two nodes, each job once."""
    first, second = apps(), apps()
    handles = first.enqueue_many([first.job(jobs.anote).bind(str(n)) for n in range(50)])
    second.job(jobs.anote)
    with first.worker(concurrency=2), second.worker(concurrency=2):
        assert [handle.result(timeout=LONG) for handle in handles] == [str(n) for n in range(50)]
    assert sorted(jobs.seen, key=int) == [str(n) for n in range(50)]


def test_leaving_a_worker_finishes_running_jobs_and_releases_the_rest(app: Windlass, gate: Gate):
    """J7.6: what runs may end, what has not started is PENDING again at once, with no attempt spent."""
    hold, ahold, note = app.job(jobs.hold), app.job(jobs.ahold), app.job(jobs.note)
    with app.worker(concurrency=2) as worker:
        running = [hold.enqueue(gate.name), ahold.enqueue(gate.name)]
        until(lambda: {handle.status() for handle in running} == {JobStatus.RUNNING})
        waiting = [note.enqueue(str(n)) for n in range(5)]
        opener = gate.open_once_draining(worker)
    opener.join()
    assert [handle.result(timeout=LONG) for handle in running] == ["let go"] * 2
    for handle in waiting:
        job = app.get(handle.id)
        assert (job.status, job.attempts, job.node) == (JobStatus.PENDING, 0, None)
    assert jobs.seen == []


def test_a_drain_releases_jobs_that_were_claimed_ahead(app: Windlass, gate: Gate):
    """J7.6, J3.3: claims that wait for a slot do not wait for the running jobs to end."""
    hold, note = app.job(jobs.ahold), app.job(jobs.anote)
    handles = app.enqueue_many([note.bind(str(n)) for n in range(150)])
    held = hold.enqueue(gate.name)
    behind = app.enqueue_many([note.bind(str(n)) for n in range(50)])
    with app.worker(concurrency=1) as worker:
        gate.wait_entered()
        node = worker.node
        assert node is not None
        drained = threading.Thread(target=worker.drain)
        drained.start()
        until(lambda: not node.poller.alive)
        until(lambda: {handle.status() for handle in behind} == {JobStatus.PENDING})
        assert held.status() is JobStatus.RUNNING
        gate.open()
        drained.join(LONG)
    assert {app.get(handle.id).attempts for handle in behind} == {0}
    assert {handle.status() for handle in handles} == {JobStatus.SUCCEEDED}


def test_jobs_that_exceed_the_drain_timeout_are_released_without_an_attempt(apps: Apps, gate: Gate):
    """J7.6: coroutines are cancelled, threads asked and interrupted; the jobs run again elsewhere."""
    app = apps(settings=IMPATIENT)
    functions = (jobs.ahold, jobs.sleep_then_return)
    held = [app.job(function) for function in functions]
    polite = app.job(jobs.loop_until_asked_to_stop)
    with app.worker():
        handles = [job.enqueue(gate.name) for job in held]
        asked = polite.enqueue()
        until(lambda: {handle.status() for handle in (*handles, asked)} == {JobStatus.RUNNING})
        until(lambda: "entered" in jobs.seen and gate.entered.is_set())
    for handle in (*handles, asked):
        job = app.get(handle.id)
        assert (job.status, job.attempts, job.node, job.error) == (JobStatus.PENDING, 0, None, None)
        assert [attempt.outcome for attempt in app.history(handle.id)] == ["released"]
    gate.open()
    again = apps()
    for function in functions:
        again.job(function)
    with again.worker():
        for handle in handles:
            assert settled(again, handle.id).attempts == 1


def test_a_body_that_ignores_the_drain_is_abandoned_and_its_result_fenced_off(apps: Apps, gate: Gate):
    """J7.6, J7.3: the node leaves all the same; what the body then returns changes nothing."""
    app = apps(settings=IMPATIENT)
    stubborn = app.job(jobs.sleep_then_return)
    with app.worker():
        handle = stubborn.enqueue(gate.name)
        gate.wait_entered()
    gate.open()
    until(lambda: jobs.seen == ["late"])
    job = app.get(handle.id)
    assert (job.status, job.attempts, job.result) == (JobStatus.PENDING, 0, None)


def test_drain_returns_whether_all_finished_and_may_be_called_twice(apps: Apps, gate: Gate):
    """J7.6: `worker.drain()` is what leaving the block does."""
    app = apps()
    ahold = app.job(jobs.ahold)
    with app.worker() as worker:
        ahold.enqueue(gate.name)
        gate.wait_entered()
        assert worker.drain(timeout=0.05) is False
        assert worker.drain() is True, "nothing is left to drain"
    gate.entered.clear()
    with app.worker() as worker:
        gate.wait_entered()
        assert worker.drain(timeout=0.05) is False
        gate.open()


async def test_leaving_an_async_worker_drains_it_too(app: Windlass, gate: Gate):
    """J7.6: `async with`: running bodies finish, and the loop goes on meanwhile."""
    ahold, hold = app.job(jobs.ahold), app.job(jobs.hold)
    ticks: list[int] = []

    async def tick() -> None:
        while not gate.opened.is_set():
            ticks.append(1)
            if len(ticks) == 20:
                gate.open()
            await asyncio.sleep(0.01)

    async with app.worker():
        handles = [await ahold.aenqueue(gate.name), await hold.aenqueue(gate.name)]
        both_run = [JobStatus.RUNNING] * 2
        await asyncio.to_thread(until, lambda: [handle.status() for handle in handles] == both_run)
        ticking = asyncio.create_task(tick())
    await ticking
    assert len(ticks) == 20
    assert [await handle.astatus() for handle in handles] == [JobStatus.SUCCEEDED] * 2


def test_an_error_in_the_block_drains_too_and_comes_out(app: Windlass):
    """J7.6: whatever ends the block, nothing is left claimed."""
    add = app.job(jobs.add)
    handle = add.enqueue(1, 2)
    with pytest.raises(LookupError, match="mine"), app.worker():
        raise LookupError("mine")
    assert handle.status() in (JobStatus.PENDING, JobStatus.SUCCEEDED)
    with app.worker():
        assert add.enqueue(2, 2).result(timeout=LONG) == 4
