"""Inline mode: a job has run when `enqueue` returns."""

import threading

import pytest

from tests.testing import kit_shop
from tests.testing.kit_shop import (
    awhere,
    charge,
    fetch,
    greet,
    order_and_await,
    order_and_wait,
    seen,
    where,
)
from windlass import JobFailedError, JobStatus, Windlass
from windlass.testing import NoWorkerError, advance, enqueued, inline


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()


def test_a_job_has_run_when_enqueue_returns():
    """api.md Testing: in this thread, through the store and the engine."""
    with inline(kit_shop.app) as app:
        handle = charge.enqueue(42)
        assert handle.result() == "charged 42 EUR"
        assert [attempt.outcome for attempt in app.history(handle.id)] == ["succeeded"]
        assert where.enqueue().result() == (threading.get_ident(), True)
        assert awhere.enqueue().result() == threading.get_ident()


def test_many_have_run_too():
    with inline(kit_shop.app) as app:
        handles = app.enqueue_many([charge.bind(number) for number in range(3)])
        assert [handle.status() for handle in handles] == [JobStatus.SUCCEEDED] * 3


def test_jobs_enqueued_by_a_job_run_before_it_continues():
    with inline(kit_shop.app):
        assert order_and_wait.enqueue(7).result() == "charged 7 EUR"
        assert order_and_await.enqueue(8).result() == "charged 8 EUR"


def test_a_failure_is_the_jobs_own():
    with inline(kit_shop.app):
        handle = fetch.using(max_retries=0).enqueue("http://a")
        with pytest.raises(JobFailedError, match="no answer from http://a"):
            handle.result()


def test_a_failure_may_come_out_of_enqueue():
    with inline(kit_shop.app, propagate=True) as app:
        with pytest.raises(ConnectionError, match="no answer"):
            fetch.using(max_retries=0).enqueue("http://a")
        assert [job.status for job in enqueued(app)] == [JobStatus.FAILED]
        assert charge.enqueue(42).result() == "charged 42 EUR"


def test_jobs_that_are_not_due_wait_for_the_clock():
    with inline(kit_shop.app):
        later = charge.using(delay=60).enqueue(1)
        retried = fetch.enqueue("http://a")
        with pytest.raises(NoWorkerError):
            later.result()
        advance(60)
        assert later.result() == "charged 1 EUR"
        assert seen == ["http://a", 1, "http://a"]
        advance(60)
        assert retried.status() is JobStatus.FAILED


async def test_async_code_enqueues_in_either_way():
    with inline(kit_shop.app):
        assert await (await greet.aenqueue("Ada")).aresult() == "hello Ada"
        assert await (await awhere.aenqueue()).aresult() == threading.get_ident()
        assert await (await order_and_await.aenqueue(8)).aresult() == "charged 8 EUR"
        assert await charge.enqueue(42).aresult() == "charged 42 EUR"  # blocks the loop, as it does in production


async def test_a_failure_may_come_out_of_aenqueue():
    with inline(kit_shop.app, propagate=True):
        with pytest.raises(ConnectionError):
            await fetch.aenqueue("http://a")
        with pytest.raises(ConnectionError):
            fetch.enqueue("http://b")


def test_inline_works_on_the_store_of_the_test_and_ends_with_its_block(shop: Windlass):
    waiting = charge.enqueue(1)
    with inline(shop):
        charge.enqueue(2)
        assert waiting.status() is JobStatus.SUCCEEDED
    assert charge.enqueue(3).status() is JobStatus.PENDING
    assert len(enqueued(shop)) == 3
