"""`drain` and `adrain`: the engine of a worker, driven by hand."""

import asyncio
import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from tests.engine.apps import Shop
from tests.testing import kit_shop
from tests.testing.kit_shop import (
    Payments,
    adawdle,
    again,
    aleave,
    awhere,
    cancel_yourself,
    charge,
    dawdle,
    fetch,
    greet,
    greet_on_a_thread,
    leave,
    order,
    report,
    seen,
    snooze_once,
    stumble,
    where,
)
from windlass import JobCompleted, JobFailedError, JobStatus, Priority, Settings, Windlass
from windlass.errors import ConfigurationError, InvalidOptionError, WouldBlockLoopError
from windlass.testing import Drained, EndlessDrainError, adrain, advance, drain, enqueued, isolated

# ---------------------------------------------------------------------------------------------- what runs


def test_jobs_run_in_the_exact_order_of_claims(shop: Windlass):
    """J3.1: priority first, then due time, then id."""
    charge.using(priority=Priority.LOW).enqueue(4)
    charge.using(delay=30).enqueue(3)
    advance(10)
    charge.using(delay=10).enqueue(2)
    charge.using(priority=Priority.HIGH).enqueue(1)
    advance(20)
    assert drain(shop).succeeded == 4
    assert seen == [1, 2, 3, 4]


def test_waiting_raises_a_priority(shop: Windlass):
    """J3.1: a boost for every 15 minutes past due."""
    charge.using(priority=Priority.LOW).enqueue(1)
    advance(timedelta(minutes=31))
    charge.using(priority=Priority.NORMAL).enqueue(2)
    drain(shop)
    assert seen == [1, 2]


def test_jobs_enqueued_by_jobs_run_in_the_usual_order(shop: Windlass):
    """J3.1: no job is claimed ahead, so an urgent one that comes up meanwhile is next."""
    order.enqueue(2)
    charge.enqueue(50)
    assert drain(shop) == Drained(succeeded=5)
    assert seen == [99, 50, 0, 1]


def test_retries_without_a_delay_run_in_the_same_drain(shop: Windlass):
    handle = stumble.enqueue()
    assert drain(shop) == Drained(succeeded=1, retried=2)
    assert handle.result() == "there"
    assert [attempt.outcome for attempt in shop.history(handle.id)] == ["retried", "retried", "succeeded"]


def test_retries_with_a_backoff_wait_for_the_clock(shop: Windlass):
    handle = fetch.enqueue("http://a")
    assert drain(shop) == Drained(retried=1)
    assert drain(shop) == Drained()
    advance(59)
    assert not drain(shop)
    advance(1)
    assert drain(shop) == Drained(retried=1)
    advance(60)
    assert drain(shop) == Drained(failed=1)
    assert shop.get(handle.id).attempts == 3


def test_future_jobs_wait_for_the_clock(shop: Windlass):
    charge.using(delay=60).enqueue(1)
    charge.using(run_at=shop.parts.clock.now() + timedelta(hours=1)).enqueue(2)
    assert not drain(shop)
    advance(shop, 60)
    drain(shop)
    assert seen == [1]
    advance(timedelta(minutes=59))
    drain(shop)
    assert seen == [1, 2]


def test_only_the_given_queues_are_drained(shop: Windlass):
    charge.using(queue="billing").enqueue(1)
    charge.enqueue(2)
    assert drain(shop, queues=["billing"]).total == 1
    assert seen == [1]
    with pytest.raises(InvalidOptionError, match=r"\['billing'\]"):
        drain(shop, queues="billing")


def test_an_endless_loop_ends_with_an_error_and_loses_nothing(shop: Windlass):
    again.enqueue()
    with pytest.raises(EndlessDrainError, match=r"tests\.testing\.kit_shop:again"):
        drain(shop, limit=3)
    assert [job.status for job in enqueued(shop)] == [JobStatus.SUCCEEDED] * 3 + [JobStatus.PENDING]


def test_a_limit_that_is_just_enough_is_enough(shop: Windlass):
    shop.enqueue_many([charge.bind(number) for number in range(3)])
    assert drain(shop, limit=3).succeeded == 3
    with pytest.raises(InvalidOptionError):
        drain(shop, limit=0)


def test_large_arguments_are_loaded_like_small_ones(shop: Windlass):
    """J3.3: a claim does not bring them."""
    handle = greet.enqueue("x" * 5_000)
    drain(shop)
    assert handle.result() == "hello " + "x" * 5_000


def test_a_drain_returns_what_it_did(shop: Windlass):
    stumble.enqueue()
    snooze_once.enqueue()
    cancel_yourself.enqueue()
    seen.clear()
    drained = drain(shop, queues=["default"])
    assert drained
    assert repr(drained) == f"Drained(succeeded={drained.succeeded}, retried=2, canceled=1)"
    assert repr(Drained()) == "Drained()"


def test_a_snoozed_job_is_run_again_when_it_is_due(shop: Windlass):
    """J4.4: no attempt is spent."""
    handle = snooze_once.enqueue()
    assert drain(shop) == Drained(snoozed=1)
    advance(30)
    assert drain(shop) == Drained(succeeded=1)
    assert shop.get(handle.id).attempts == 1


# ---------------------------------------------------------------------------------------------- the same engine


@pytest.mark.parametrize("job", [dawdle, adawdle])
def test_timeouts_hold(shop: Windlass, job):
    """J4.5: measured in real time; a sync body cannot be cut short, but its job still fails."""
    handle = job.enqueue()
    drain(shop)
    with pytest.raises(JobFailedError) as caught:
        handle.result()
    assert caught.value.error_class == "JobTimeoutError"


def test_subscribers_have_been_called_when_a_drain_returns():
    """J5.8: after the commit."""
    events = []
    app = Windlass("sqlite://", settings=Settings())
    app.on(JobCompleted)(lambda event: events.append(event.job_id))
    with isolated(app):
        handle = app.job(kit_shop.plain).enqueue(1)
        drain(app)
        assert events == [handle.id]
    app.close()


def test_callbacks_are_jobs_of_the_same_drain(shop: Windlass):
    """J5.5."""
    charge.using(on_success=report).enqueue(1)
    fetch.using(on_failure=report, max_retries=0).enqueue("http://a")
    assert drain(shop) == Drained(succeeded=3, failed=1)
    assert sorted(map(str, seen)) == ["1", "ConnectionError", "charged 1 EUR", "http://a"]


@pytest.mark.parametrize("app", [kit_shop.app])
def test_a_drain_works_on_every_store(app: Windlass, store_url: str):
    """api.md Testing: order, clock and retries are those of the store."""
    seen.clear()
    with isolated(app, url=store_url):
        charge.using(priority=Priority.LOW).enqueue(2)
        charge.using(priority=Priority.HIGH).enqueue(1)
        fetch.enqueue("http://a")
        assert drain(app) == Drained(succeeded=2, retried=1)
        advance(60)
        assert drain(app) == Drained(retried=1)
        assert seen == [1, "http://a", 2, "http://a"]
        assert app.nodes() == []  # every drain has signed off


def test_a_target_that_no_node_knows_is_passed_over(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """J6.3: it waits for a node that knows it, and does not hold up the drain."""
    module = Shop(tmp_path)
    with monkeypatch.context() as there:
        there.syspath_prepend(tmp_path)
        known = Windlass(sqlite_url, settings=Settings())
        known.job(module.load("def ship(): pass").ship).enqueue()
        module.unload()
    unknown = Windlass(sqlite_url, settings=Settings(), allow=[module.name])
    assert drain(unknown) == Drained(passed_over=1)
    assert drain(known) == Drained(succeeded=1)
    known.close()
    unknown.close()


# ---------------------------------------------------------------------------------------------- where bodies run


def test_bodies_run_in_this_thread_and_may_use_loops_of_their_own(shop: Windlass):
    sync, coroutine = where.enqueue(), awhere.enqueue()
    greet_on_a_thread.enqueue("Ada")
    drain(shop)
    here = threading.get_ident()
    assert sync.result() == (here, True)
    assert coroutine.result() == here
    assert seen == [("Ada", here)]


def test_jobs_for_other_processes_run_in_this_one(shop: Windlass):
    """What a test has patched holds for them, too."""
    handle = Payments.audit.enqueue(2030)
    drain(shop)
    assert handle.result() == (2030, os.getpid())


async def test_an_async_test_awaits_the_twin(shop: Windlass):
    """Coroutines run on its loop, sync bodies beside it."""
    sync, coroutine = await where.aenqueue(), await awhere.aenqueue()
    with pytest.raises(WouldBlockLoopError, match="await adrain"):
        drain(shop)
    assert await adrain(shop) == Drained(succeeded=2)
    assert await coroutine.aresult() == threading.get_ident()
    assert (await sync.aresult())[0] != threading.get_ident()


def test_the_event_loop_of_a_test_is_not_changed(shop: Windlass):
    policy = asyncio.get_event_loop_policy()
    mine = asyncio.new_event_loop()
    policy.set_event_loop(mine)
    try:
        greet.enqueue("Ada")
        drain(shop)
        assert policy.get_event_loop() is mine
    finally:
        policy.set_event_loop(None)
        mine.close()


def test_a_worker_and_a_drain_do_not_compete(shop: Windlass):
    with shop.worker(), pytest.raises(ConfigurationError, match="stop the worker"):
        drain(shop)


# ---------------------------------------------------------------------------------------------- errors


def test_errors_of_jobs_are_raised_only_on_request(shop: Windlass):
    first = fetch.using(max_retries=0).enqueue("http://a")
    second = charge.enqueue(1)
    with pytest.raises(ConnectionError, match="no answer from http://a"):
        drain(shop, raise_errors=True)
    assert first.status() is JobStatus.FAILED
    assert second.status() is JobStatus.PENDING
    assert drain(shop, raise_errors=True) == Drained(succeeded=1)


def test_a_failure_that_no_body_raised_is_raised_as_a_handle_would(shop: Windlass):
    adawdle.enqueue()
    with pytest.raises(JobFailedError, match="timeout"):
        drain(shop, raise_errors=True)


async def test_the_async_twin_raises_errors_too(shop: Windlass):
    await fetch.aenqueue("http://a")
    with pytest.raises(ConnectionError):
        await adrain(shop, raise_errors=True)


@pytest.mark.parametrize("job", [leave, aleave])
@pytest.mark.parametrize(
    ("how", "error"),
    [("interrupt", KeyboardInterrupt), ("fail", pytest.fail.Exception), ("skip", pytest.skip.Exception)],
)
def test_exceptions_meant_for_the_test_are_raised_by_the_drain(
    shop: Windlass, job, how: str, error: type[BaseException]
):
    """Ctrl-C, a timeout of the test and `pytest.fail` inside a body end the drain; the job has failed by then."""
    handle = job.enqueue(how)
    with pytest.raises(error):
        drain(shop)
    assert handle.status() is JobStatus.FAILED


def test_an_error_is_that_of_the_job_that_failed(sqlite_url: str):
    """A body that was not entered has raised nothing, whatever the one before it raised."""
    seen.clear()
    writer, reader = (Windlass(sqlite_url, settings=Settings()) for _ in range(2))
    reader.job(snooze_once.function).enqueue()
    writer.job(kit_shop.plain).enqueue(1)
    with pytest.raises(JobFailedError, match="may not run"):
        drain(reader, raise_errors=True)
    assert seen == ["asked"]
    writer.close()
    reader.close()
