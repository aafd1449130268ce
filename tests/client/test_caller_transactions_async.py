"""Enqueueing in the caller's own transaction: the same sentences for every kind of connection that is awaited."""

import asyncio

import psycopg
import pytest

from tests.client.callers import NOTHING, ONE, Lending, make_orders, psycopg_async
from tests.client.test_caller_transactions import EVERYTHING
from tests.engine import jobs
from tests.engine.apps import LONG, Apps, count, query
from windlass import DuplicateBusinessKeyError, JobNotFoundError, JobStatus, PayloadTooLargeError


async def test_a_rollback_leaves_nothing(async_lending: Lending):
    """api.md Submitting: `aenqueue` on an async connection."""
    lending = async_lending
    note = lending.apps().job(jobs.note).using(**EVERYTHING)  # type: ignore[arg-type]
    async with lending.arolled_back() as caller:
        await caller.execute("INSERT INTO orders (id) VALUES (1)")
        await note.using(connection=caller.connection).aenqueue("never")
    assert (lending.counts(), lending.orders()) == (NOTHING, 0)


async def test_a_commit_leaves_one_row(async_lending: Lending):
    """api.md Submitting: no other connection sees the job before the commit, all do after it."""
    lending = async_lending
    note = lending.apps().job(jobs.note).using(**EVERYTHING)  # type: ignore[arg-type]
    async with lending.transaction() as caller:
        await caller.execute("INSERT INTO orders (id) VALUES (1)")
        handle = await note.using(connection=caller.connection).aenqueue("kept")
        with pytest.raises(JobNotFoundError):
            await handle.astatus()
        assert (lending.counts(), lending.orders()) == (NOTHING, 0)
    assert (lending.counts(), lending.orders()) == (ONE, 1)
    assert await handle.astatus() is JobStatus.PENDING


async def test_keys_hold_and_refusals_leave_the_transaction_usable(async_lending: Lending):
    """J1.4, J1.5: duplicates and conflicts; what the caller wrote stands, and more can be written."""
    lending = async_lending
    app = lending.apps()
    note = app.job(jobs.note)
    stored = await note.using(business_key="b").aenqueue("stored")
    async with lending.transaction() as caller:
        mine = note.using(connection=caller.connection)
        await caller.execute("INSERT INTO orders (id) VALUES (1)")
        first = await mine.using(idempotency_key="i").aenqueue("first")
        again = await mine.using(idempotency_key="i").aenqueue("again")
        assert (again.id, again.duplicate) == (first.id, True)
        with pytest.raises(DuplicateBusinessKeyError, match=str(stored.id)):
            await mine.using(business_key="b", queue="new").aenqueue("refused")
        with pytest.raises(PayloadTooLargeError):
            await mine.aenqueue("x" * 200_000)
        newer = await mine.using(business_key="b", on_conflict="replace").aenqueue("newer")
        await caller.execute("INSERT INTO orders (id) VALUES (2)")
    assert (await app.aget(stored.id)).superseded_by == newer.id
    assert lending.orders() == 2
    assert query(lending.url, "SELECT name FROM windlass_queue") == [("default",)]


async def test_many_calls_share_the_transaction(async_lending: Lending):
    """api.md Submitting: `aenqueue_many`, in order, all or none."""
    lending = async_lending
    app = lending.apps()
    async with lending.transaction() as caller:
        mine = app.job(jobs.note).using(connection=caller.connection)
        handles = await app.aenqueue_many([mine.bind(str(number)) for number in range(1_200)])
        with pytest.raises(DuplicateBusinessKeyError):
            await app.aenqueue_many([mine.using(business_key="b").bind(str(number)) for number in range(2)])
    assert [(await app.aget(handle.id)).args for handle in handles[::400]] == [("0",), ("400",), ("800",)]
    assert count(lending.url, "job") == count(lending.url, "hot") == 1_200


async def test_a_cancelled_enqueue_leaves_the_transaction_usable(empty_postgres: str):
    """api.md Errors: a task that gives up while it waits for another's key does not take its transaction along.

    SQLAlchemy is left out: it throws its connection away when any statement on it is cancelled.
    """
    apps = Apps(empty_postgres)
    make_orders(apps.url)
    note = apps().job(jobs.note).using(idempotency_key="i")
    with psycopg.connect(apps.url) as other:
        note.using(connection=other).enqueue("first, not committed")
        async with psycopg_async(apps.url) as caller:
            await caller.execute("INSERT INTO orders (id) VALUES (1)")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await note.using(connection=caller.connection).aenqueue("waits")
            other.rollback()
            handle = await asyncio.wait_for(note.using(connection=caller.connection).aenqueue("now"), LONG)
    assert handle.duplicate is False
    assert query(apps.url, "SELECT count(*) FROM orders") == [(1,)]
    assert count(apps.url, "job") == 1
    apps.close()
