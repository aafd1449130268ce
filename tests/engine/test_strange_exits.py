"""Bodies that end in ways a body should not: each is its own job's failure, and the worker lives on."""

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, settled
from windlass import JobStatus, Windlass

STRANGE = {
    "system exit": "SystemExit",
    "keyboard interrupt": "KeyboardInterrupt",
    "stop iteration": "StopIteration",
    "stop async iteration": "StopAsyncIteration",
    "generator exit": "GeneratorExit",
    "cancelled": "CancelledError",
    "base exception": "BaseException",
    "base group": "BaseExceptionGroup",
    "no message": "ValueError",
}


def test_exit_exceptions_of_sync_bodies_fail_their_job(app: Windlass):
    """J5.1: SystemExit and the like fail the job, retries apply, and nothing else is touched."""
    fail, add = app.job(max_retries=1)(jobs.raise_it), app.job(jobs.add)
    with app.worker(concurrency=3):
        handles = {what: fail.enqueue(what) for what in STRANGE}
        found = {what: settled(app, handle.id) for what, handle in handles.items()}
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
    assert {what: job.error_class for what, job in found.items()} == STRANGE
    assert {(job.status, job.attempts) for job in found.values()} == {(JobStatus.FAILED, 2)}


def test_exit_exceptions_of_coroutines_fail_their_job(app: Windlass):
    """J5.1: on the loop too; Python itself turns a StopIteration of a coroutine into a RuntimeError."""
    fail, add = app.job(max_retries=1)(jobs.araise_it), app.job(jobs.aadd)
    with app.worker(concurrency=3):
        handles = {what: fail.enqueue(what) for what in STRANGE}
        found = {what: settled(app, handle.id) for what, handle in handles.items()}
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
    assert {what: job.error_class for what, job in found.items()} == {**STRANGE, "stop iteration": "RuntimeError"}
    assert {(job.status, job.attempts) for job in found.values()} == {(JobStatus.FAILED, 2)}


async def test_exit_exceptions_do_not_end_the_callers_loop(app: Windlass):
    """J5.1: with `async with`, the loop is the user's own."""
    fail, add = app.job(jobs.araise_it), app.job(jobs.aadd)
    async with app.worker():
        handles = [await fail.aenqueue(what) for what in STRANGE]
        assert [await handle.ajoin(timeout=LONG) for handle in handles] == [JobStatus.FAILED] * len(STRANGE)
        assert await (await add.aenqueue(1, 2)).aresult(timeout=LONG) == 3


@pytest.mark.parametrize("what", ["system exit", "keyboard interrupt"])
def test_an_exit_from_a_task_of_the_body_does_not_end_the_worker(app: Windlass, what: str):
    """J5.1: asyncio lets these through to the loop itself; the worker's own loop goes on all the same."""
    fail, add = app.job(jobs.araise_in_a_task), app.job(jobs.aadd)
    with app.worker():
        job = settled(app, fail.enqueue(what).id)
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
    assert (job.status, job.error_class) == (JobStatus.FAILED, STRANGE[what])


def test_exit_exceptions_of_coroutines_on_threads_fail_their_job(app: Windlass):
    """J5.1, J4.2: a coroutine on a thread of its own ends that thread's loop at most."""
    fail, add = app.job(executor="thread")(jobs.araise_it), app.job(jobs.aadd)
    with app.worker():
        found = {what: settled(app, fail.enqueue(what).id).status for what in STRANGE}
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
    assert found == dict.fromkeys(STRANGE, JobStatus.FAILED)
