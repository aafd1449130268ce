"""`isolated` and `advance`: an application works on a store and a clock of the test's own for a while."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from tests.testing import kit_shop
from tests.testing.kit_shop import charge, greet
from windlass import JobStatus, Settings, Windlass
from windlass.domain.clock import SystemClock
from windlass.errors import ConfigurationError, InvalidOptionError, StoreUnavailableError
from windlass.testing import NoWorkerError, VirtualClock, advance, assert_enqueued, drain, enqueued, isolated


def test_the_real_store_is_never_touched_and_back_afterwards():
    """api.md Testing: the application's own store cannot be opened here, so any use of it would raise."""
    with isolated(kit_shop.app) as app:
        assert app is kit_shop.app
        handle = charge.enqueue(42)
        assert app.get(handle.id).status is JobStatus.PENDING
    with pytest.raises(StoreUnavailableError):
        charge.enqueue(42)
    assert isinstance(kit_shop.app.parts.clock, SystemClock)


def test_every_block_has_a_new_store():
    for _ in range(2):
        with isolated(kit_shop.app) as app:
            assert enqueued(app) == []
            charge.enqueue(1)


def test_a_test_that_fails_leaves_no_trace():
    before = kit_shop.app.parts
    with pytest.raises(ZeroDivisionError), isolated(kit_shop.app):
        _ = 1 / 0
    assert kit_shop.app.parts is before


def test_blocks_may_be_nested():
    with isolated(kit_shop.app) as app:
        charge.enqueue(1)
        with isolated(app):
            assert enqueued(app) == []
        assert len(enqueued(app)) == 1


def test_the_application_may_be_closed_by_the_test():
    with isolated(kit_shop.app) as app:
        charge.enqueue(1)
        app.close()
    with isolated(kit_shop.app) as app:
        charge.enqueue(1)
        assert drain(app).succeeded == 1


def test_a_worker_may_run_inside_but_not_across(shop: Windlass):
    with shop.worker():
        assert greet.enqueue("Ada").result(timeout=90) == "hello Ada"
        with pytest.raises(ConfigurationError, match="stop the worker first"), isolated(shop):
            pass


class Recorder:
    """A coordinator that records its calls."""

    def __init__(self) -> None:
        self.queues: list[str] = []

    def notify_new_work(self, queue: str, priority: int) -> None:
        self.queues.append(queue)

    def listen(self, callback: Callable[[str, int], None]) -> None:
        pass

    def close(self) -> None:
        pass


def test_other_processes_are_not_notified_of_a_tests_jobs():
    coordinator = Recorder()
    app = Windlass("sqlite://", settings=Settings(), coordinator=coordinator)
    job = app.job(kit_shop.plain)
    with isolated(app):
        job.enqueue(1)
    assert coordinator.queues == []
    job.enqueue(1)
    assert coordinator.queues == ["default"]
    app.close()


def test_a_job_in_the_callers_transaction_needs_a_store_that_the_caller_can_reach(sqlite_url: str):
    """api.md Submitting: in memory no other connection reaches it."""
    with isolated(kit_shop.app), closing(sqlite3.connect(":memory:")) as mine, pytest.raises(InvalidOptionError):
        charge.using(connection=mine).enqueue(1)
    with isolated(kit_shop.app, url=sqlite_url) as app:
        app.migrate()
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as mine:
            charge.using(connection=mine).enqueue(1)
            mine.rollback()
            charge.using(connection=mine).enqueue(2)
            mine.commit()
        assert_enqueued(charge, 2)
        assert drain(app).total == 1


# ---------------------------------------------------------------------------------------------- waiting


def test_waiting_for_a_job_that_nothing_runs_fails_at_once(shop: Windlass):
    handle = charge.enqueue(42)
    for wait in (handle.result, handle.join):
        with pytest.raises(NoWorkerError, match=r"drain\(app\)"):
            wait()
    drain(shop)
    assert handle.result() == "charged 42 EUR"
    assert handle.join() is JobStatus.SUCCEEDED


async def test_awaiting_a_job_that_nothing_runs_fails_at_once(shop: Windlass):
    handle = await charge.aenqueue(42)
    with pytest.raises(NoWorkerError):
        await handle.aresult()


def test_a_body_that_waits_for_another_job_gets_an_error(shop: Windlass):
    """A drain runs one job at a time: the other one will not end meanwhile."""
    kit_shop.order_and_wait.enqueue(42)
    with pytest.raises(NoWorkerError):
        drain(shop, raise_errors=True)


# ---------------------------------------------------------------------------------------------- the clock


def test_the_clock_stops_until_it_is_advanced(shop: Windlass):
    before = shop.parts.clock.now()
    advance(90)
    advance(shop, timedelta(minutes=1))
    assert shop.parts.clock.now() - before == timedelta(seconds=150)
    job = shop.get(charge.enqueue(1).id)
    assert job.created_at == job.due_at == shop.parts.clock.now()


def test_a_test_may_choose_where_the_clock_begins():
    new_year = datetime(2024, 1, 1, tzinfo=UTC)
    clock = VirtualClock(new_year)
    with isolated(kit_shop.app, clock=clock) as app:
        handle = charge.enqueue(1)
        clock.set(datetime(2025, 1, 1, tzinfo=UTC))
        drain(app)
        job = app.get(handle.id)
    assert (job.created_at, job.picked_at) == (new_year, datetime(2025, 1, 1, tzinfo=UTC))


def test_moving_a_real_clock_is_an_error_with_advice():
    with pytest.raises(ConfigurationError, match=r"with isolated\(app\)"):
        advance(kit_shop.app, 60)


def test_without_an_application_it_must_be_clear_which_is_meant(shop: Windlass):
    with isolated(kit_shop.other), pytest.raises(ConfigurationError, match="2 applications"):
        advance(60)
    advance(60)
    with pytest.raises(TypeError, match="seconds are missing"):
        advance(shop)  # type: ignore[call-overload]
    with pytest.raises(InvalidOptionError):
        advance(-1)


def test_outside_of_tests_there_is_no_clock_to_move():
    with pytest.raises(ConfigurationError, match="no application is being tested"):
        advance(60)
