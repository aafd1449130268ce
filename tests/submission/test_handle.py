"""Handles: following a job from anywhere, in every way it can end."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, Gate, until
from windlass import (
    DuplicateBusinessKeyError,
    InvalidOptionError,
    JobCanceledError,
    JobFailedError,
    JobHandle,
    JobNotFoundError,
    JobStatus,
    Windlass,
    WindlassError,
    WouldBlockLoopError,
)
from windlass.client import job_verbs
from windlass.domain.identity import new_job_id
from windlass.runtime.verbs import Verb
from windlass.stores.plans import explanations


def test_a_handle_follows_its_job(app: Windlass, gate: Gate):
    """J2.1: PENDING, RUNNING, SUCCEEDED; the result can be asked for as often as one likes."""
    hold = app.job(jobs.hold)
    handle = hold.enqueue(gate.name)
    assert isinstance(handle, JobHandle)
    assert (handle.status(), handle.duplicate) == (JobStatus.PENDING, False)
    with app.worker():
        gate.wait_entered()
        assert handle.status() is JobStatus.RUNNING
        gate.open()
        assert handle.join(timeout=LONG) is JobStatus.SUCCEEDED
    assert [handle.result(), handle.result(timeout=0), handle.result(timeout=timedelta(seconds=1))] == ["let go"] * 3
    assert str(handle.id) in repr(handle)


async def test_the_async_twins_of_a_handle_follow_its_job(app: Windlass, gate: Gate):
    """J2.1: astatus, aresult, ajoin."""
    hold = app.job(jobs.ahold)
    handle = await hold.aenqueue(gate.name)
    assert await handle.astatus() is JobStatus.PENDING
    async with app.worker():
        until_running = asyncio.to_thread(gate.wait_entered)
        await until_running
        assert await handle.astatus() is JobStatus.RUNNING
        gate.open()
        assert await handle.aresult(timeout=LONG) == "let go"
        assert await handle.ajoin(timeout=timedelta(seconds=LONG)) is JobStatus.SUCCEEDED


async def test_a_failed_job_raises_from_result_and_not_from_join(app: Windlass):
    """J5.3: JobFailedError carries job_id, reason, error and error_class."""
    fail = app.job(max_retries=1)(jobs.fail)
    async with app.worker():
        handle = await fail.aenqueue("broken")
        with pytest.raises(JobFailedError) as awaited:
            await handle.aresult(timeout=LONG)
    assert await handle.ajoin(timeout=LONG) is JobStatus.FAILED
    with pytest.raises(JobFailedError) as blocked:
        await asyncio.to_thread(handle.result, LONG)
    for error in (awaited.value, blocked.value):
        assert (error.job_id, error.reason) == (handle.id, "retry_exhausted")
        assert (error.error, error.error_class) == ("ValueError: broken", "ValueError")
        assert "ValueError: broken" in str(error)
        assert isinstance(error, WindlassError)


def test_a_canceled_job_raises_its_own_error(app: Windlass):
    """J1.5: a superseded job is CANCELED, and its waiter learns of it."""
    note = app.job(jobs.note).using(business_key="order:7", on_conflict="replace")
    old = note.enqueue("old")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(old.result, LONG)
        note.enqueue("new")
        with pytest.raises(JobCanceledError) as caught:
            waiting.result(LONG)
    assert caught.value.job_id == old.id
    assert old.join(timeout=0) is JobStatus.CANCELED


async def test_a_wait_that_is_over_raises_timeout_error_and_changes_nothing(app: Windlass):
    """J2.1: the message says that the job is not affected; the handle can be asked again."""
    add = app.job(jobs.add)
    handle = await add.aenqueue(1, 2)
    for wait in (handle.aresult, handle.ajoin):
        with pytest.raises(TimeoutError, match=f"{handle.id}.*0.05 s.*not affected"):
            await wait(timeout=0.05)
    for block in (handle.result, handle.join):
        with pytest.raises(TimeoutError, match="not affected"):
            await asyncio.to_thread(block, timedelta(milliseconds=20))
    async with app.worker():
        assert await handle.aresult(timeout=LONG) == 3


async def test_a_wait_that_times_out_explains_what_holds_the_job_back(app: Windlass):
    """J2.1: the reason and the code of `explain`, so that no second call is needed."""
    handle = await app.job(jobs.add).aenqueue(1, 2)
    why = r"within 0.01 s: no worker is alive; start one: .* \(no_worker\)\. The job is not affected"
    with pytest.raises(TimeoutError, match=why):
        await handle.aresult(timeout=0.01)
    with pytest.raises(TimeoutError, match=why):
        await asyncio.to_thread(handle.join, 0.01)
    with pytest.raises(TimeoutError, match=r"within 0 s\. The job"):  # a look, not a wait: it costs no more
        await handle.ajoin(timeout=0)


async def test_a_wait_that_is_over_raises_timeout_error_also_where_explain_fails_or_hangs(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
):
    """J2.1: the message then has no reason."""
    handle = await app.job(jobs.add).aenqueue(1, 2)
    plain = r"within 0.01 s\. The job is not affected"
    with monkeypatch.context() as broken:
        broken.setattr(explanations, "waiting_job", None)
        with pytest.raises(TimeoutError, match=plain):
            await handle.aresult(timeout=0.01)
        with pytest.raises(TimeoutError, match=plain):
            await asyncio.to_thread(handle.result, 0.01)
    monkeypatch.setattr(job_verbs, "EXPLAIN_WITHIN", 0.01)
    released = threading.Event()

    def hang(verbs: object, job_id: str) -> Verb[None]:
        yield released.wait, asyncio.sleep, (LONG,)

    monkeypatch.setattr(job_verbs.JobVerbs, "explain", hang)
    with pytest.raises(TimeoutError, match=plain):
        await handle.aresult(timeout=0.01)
    with pytest.raises(TimeoutError, match=plain):
        await asyncio.to_thread(handle.result, 0.01)
    released.set()


def test_a_timeout_that_is_no_time_is_refused(app: Windlass):
    """api.md: durations are seconds or timedelta."""
    handle = app.job(jobs.add).enqueue(1, 2)
    for wrong in (-1, float("nan"), "10", True):
        with pytest.raises(InvalidOptionError, match="timeout"):
            handle.result(timeout=wrong)  # type: ignore[arg-type]


async def test_blocking_on_a_running_loop_is_refused_and_names_the_twin(app: Windlass):
    """design 5: it would block the loop, and with it perhaps the very job; sync `enqueue` there is allowed."""
    add = app.job(jobs.aadd)
    async with app.worker():
        handle = add.enqueue(1, 2)
        with pytest.raises(WouldBlockLoopError, match=r"await handle\.aresult\(\)"):
            handle.result(timeout=1)
        with pytest.raises(WouldBlockLoopError, match=r"await handle\.ajoin\(\)"):
            handle.join()
        assert await handle.aresult(timeout=LONG) == 3


def test_a_body_that_blocks_on_another_job_is_refused_on_the_loop_and_fine_on_a_thread(app: Windlass):
    """design 5: the error is the job's failure; a thread may wait for others."""
    jobs.APPS["waiting"] = app
    app.job(jobs.add)
    ask, aask = app.job(jobs.ask_another), app.job(jobs.aask_another)
    with app.worker():
        assert ask.enqueue().result(timeout=LONG) == 3
        with pytest.raises(JobFailedError, match="aresult") as caught:
            aask.enqueue().result(timeout=LONG)
    assert caught.value.error_class == "WouldBlockLoopError"


def test_handles_are_made_from_ids_by_any_application(app: Windlass, apps: Apps):
    """api.md: `app.handle(id)`, `charge.handle(id)`; text or UUID."""
    add = app.job(jobs.add)
    first = add.enqueue(1, 2)
    with app.worker():
        first.join(timeout=LONG)
    other = apps()
    assert other.job(jobs.add).handle(first.id).result(timeout=LONG) == 3
    assert other.handle(str(first.id)).result(timeout=LONG) == 3
    stranger = apps()
    assert stranger.handle(first.id).result(timeout=LONG) == 3, "the target need not be known to read the result"
    assert stranger.handle(first.id).id == first.id


async def test_handles_of_unknown_ids_raise(app: Windlass):
    """api.md: unknown ids are JobNotFoundError, texts that are no id an InvalidOptionError."""
    stranger = new_job_id()
    with pytest.raises(JobNotFoundError, match=str(stranger)):
        await app.handle(stranger).aresult(timeout=1)
    with pytest.raises(JobNotFoundError, match=str(stranger)):
        await asyncio.to_thread(app.handle(stranger).join, 1)
    with pytest.raises(JobNotFoundError, match=str(stranger)):
        await app.handle(stranger).astatus()
    with pytest.raises(InvalidOptionError, match="order-7"):
        app.handle("order-7")


def test_many_threads_wait_for_many_jobs(app: Windlass, apps: Apps):
    """design 4: one waiter per process serves all handles."""
    add = app.job(jobs.aadd)
    asking = apps()
    handles = asking.enqueue_many([asking.job(jobs.aadd).bind(n, n) for n in range(50)])
    with ThreadPoolExecutor(50) as pool:
        waiting = [pool.submit(handle.result, LONG) for handle in handles]
        waiting += [pool.submit(add.handle(handle.id).result, LONG) for handle in handles]
        with app.worker():
            assert [future.result(LONG) for future in waiting] == [2 * n for n in range(50)] * 2
    assert len([thread for thread in threading.enumerate() if thread.name == "windlass results"]) <= 2


async def test_many_tasks_wait_for_one_job(app: Windlass, gate: Gate):
    """design 4: all waiting callers get the outcome; one that gave up delays no other."""
    hold = app.job(jobs.ahold)
    async with app.worker():
        handle = await hold.aenqueue(gate.name)
        waiting = [asyncio.create_task(handle.aresult(timeout=LONG)) for _ in range(20)]
        await asyncio.to_thread(gate.wait_entered)
        waiting[0].cancel()
        gate.open()
        assert await asyncio.gather(*waiting[1:]) == ["let go"] * 19
        assert await handle.aresult(timeout=LONG) == "let go"


def test_the_holder_named_by_a_conflict_can_be_followed(app: Windlass):
    """J1.5: the error names the job that holds the key."""
    note = app.job(jobs.note).using(business_key="order:7")
    first = note.enqueue("first")
    with pytest.raises(DuplicateBusinessKeyError) as caught:
        note.enqueue("second")
    with app.worker():
        assert app.handle(caught.value.holder).result(timeout=LONG) == "first"
    assert until(first.status) is JobStatus.SUCCEEDED
