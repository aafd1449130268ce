"""`with app.use_connection(…)`: every enqueue inside belongs to that transaction."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from tests.client.callers import (
    NOTHING,
    Lending,
    RolledBack,
    asyncpg_transaction,
    path_of,
    sqlalchemy_asyncpg_connection,
)
from tests.engine import jobs
from tests.engine.apps import LONG, Apps, count
from windlass import ConfigurationError, InvalidOptionError, StoreUnavailableError, Windlass


@pytest.fixture
def sqlite_app(sqlite_url: str) -> Iterator[Windlass]:
    apps = Apps(sqlite_url)
    yield apps()
    apps.close()


def test_every_enqueue_inside_joins_the_transaction(lending: Lending):
    """J10.3: jobs, bound calls, many at once, with options; a rollback leaves nothing of them."""
    app = lending.apps()
    note = app.job(jobs.note)
    with lending.rolled_back() as caller, app.use_connection(caller.connection):
        note.enqueue("a")
        note.using(queue="new", tags=["t"], business_key="b").enqueue("b")
        app.bind(jobs.note, "c").enqueue()
        app.enqueue_many([note.bind("d"), note.using(priority=4).bind("e")])
    assert lending.counts() == NOTHING
    with lending.transaction() as caller, app.use_connection(caller.connection):
        note.enqueue("kept")
        app.enqueue_many([note.bind("kept")])
        assert count(lending.url, "job") == 0
    assert count(lending.url, "job") == 2
    note.enqueue("outside, in a transaction of its own")
    assert count(lending.url, "job") == 3


async def test_use_connection_applies_to_async_code(async_lending: Lending):
    """J10.3: by `with` and `async with` alike, and in tasks begun inside; another task has nothing to do with it."""
    app = async_lending.apps()
    note = app.job(jobs.note)
    entered, left = asyncio.Event(), asyncio.Event()

    async def elsewhere() -> None:
        await entered.wait()
        if async_lending.url.startswith("postgres"):
            await note.aenqueue("elsewhere")
        left.set()

    await note.aenqueue("first of its queue: others would wait until the queue's name is committed")
    other = asyncio.create_task(elsewhere())
    async with async_lending.arolled_back() as caller:
        async with app.use_connection(caller.connection):
            await note.aenqueue("a")
            entered.set()
            await left.wait()
        with app.use_connection(caller.connection):
            await app.aenqueue_many([note.bind("b"), note.bind("c")])
            await asyncio.create_task(note.aenqueue("d"))
    await other
    before = count(async_lending.url, "job")
    assert before == (2 if async_lending.url.startswith("postgres") else 1)
    async with async_lending.transaction() as caller:
        with app.use_connection(caller.connection):
            await note.aenqueue("kept")
    assert count(async_lending.url, "job") == before + 1


async def test_a_task_that_outlives_the_block_enqueues_for_itself(sqlite_app: Windlass):
    """J10.3: the transaction it was begun in is over."""
    note = sqlite_app.job(jobs.note)
    go = asyncio.Event()

    async def late() -> None:
        await go.wait()
        await note.aenqueue("late")

    with closing(sqlite3.connect(path_of(sqlite_app.url))) as connection, sqlite_app.use_connection(connection):
        task = asyncio.create_task(late())
    go.set()
    await task
    assert count(sqlite_app.url, "job") == 1


def test_blocks_nest_and_a_connection_of_a_call_comes_first(empty_postgres: str):
    """J10.3: the innermost counts; None is a transaction of its own; another application has its own blocks."""
    apps = Apps(empty_postgres)
    app, another = apps(), apps()
    note, others = app.job(jobs.note), another.job(jobs.note)
    note.enqueue("first of its queue: others would wait until the queue's name is committed")
    with psycopg.connect(empty_postgres) as outer, psycopg.connect(empty_postgres) as inner:
        with app.use_connection(outer):
            note.enqueue("outer")
            with suppress(RolledBack), app.use_connection(inner):
                note.enqueue("inner")
                note.using(connection=outer).enqueue("outer")
                note.using(connection=None).enqueue("own")
                others.enqueue("own")
                raise RolledBack
            note.enqueue("outer")
            with app.use_connection(None):
                note.enqueue("own")
            with pytest.raises(InvalidOptionError, match="must all carry the same connection, or none"):
                app.enqueue_many([note.bind("x"), note.using(connection=inner).bind("x")])
        assert count(empty_postgres, "job") == 4
        inner.rollback()
        outer.commit()
    assert count(empty_postgres, "job") == 7
    apps.close()


def test_threads_and_bodies_of_jobs_enqueue_for_themselves(sqlite_app: Windlass):
    """J10.3: a worker that was started inside a block runs bodies that know nothing of it."""
    note, follow = sqlite_app.job(jobs.note), sqlite_app.job(follow_up)
    jobs.APPS["follow"] = sqlite_app
    handle = follow.enqueue()
    with closing(sqlite3.connect(path_of(sqlite_app.url))) as connection, sqlite_app.use_connection(connection):
        thread = threading.Thread(target=note.enqueue, args=("thread",))
        thread.start()
        thread.join()
        with sqlite_app.worker():
            assert handle.result(LONG) is None
            assert connection.in_transaction is False
    assert count(sqlite_app.url, "job") == 3


def follow_up() -> None:
    jobs.APPS["follow"].bind(jobs.note, "followed").enqueue()


def test_an_unsupported_connection_is_refused_at_once(sqlite_app: Windlass):
    """J10.3: and a block is entered once."""
    with pytest.raises(InvalidOptionError, match=r"connection must be a sqlite3\.Connection"):
        sqlite_app.use_connection("sqlite:///shop.db")
    with closing(sqlite3.connect(path_of(sqlite_app.url))) as connection:
        block = sqlite_app.use_connection(connection)
        with block, pytest.raises(ConfigurationError, match="is open already"), block:
            pass


def test_a_closed_connection_gives_an_error_of_ours(sqlite_app: Windlass, empty_postgres: str):
    """Issue 10: whichever library it is of; nothing is stored."""
    apps = Apps(empty_postgres)
    on_server = apps()
    plain = sqlite3.connect(path_of(sqlite_app.url))
    server = psycopg.connect(empty_postgres)
    engine = create_engine(sqlite_app.url)
    pooled = engine.connect()
    cases: list[tuple[Windlass, Any]] = [(sqlite_app, plain), (on_server, server), (sqlite_app, pooled)]
    for app, connection in cases:
        connection.close()
        with pytest.raises(
            InvalidOptionError, match=r"connection is closed \((sqlite3|psycopg|SQLAlchemy)\); enqueue before"
        ):
            app.job(jobs.note).using(connection=connection).enqueue("never")
    with Session(engine) as session:
        session.close()  # begins again by itself
        sqlite_app.job(jobs.note).using(connection=session).enqueue("never")
    engine.dispose()
    apps.close()
    assert count(sqlite_app.url, "job") == 0


def test_a_connection_that_was_lost_gives_an_error_of_ours(empty_postgres: str):
    """Issue 10: the server ended it, and its transaction is gone."""
    apps = Apps(empty_postgres)
    note = apps().job(jobs.note)
    with suppress(psycopg.OperationalError), psycopg.connect(empty_postgres) as lost:
        with psycopg.connect(empty_postgres, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [lost.info.backend_pid])
        with suppress(psycopg.OperationalError):
            lost.execute("SELECT 1")
        with pytest.raises(StoreUnavailableError, match="connection was lost"):
            note.using(connection=lost).enqueue("never")
    apps.close()


async def test_a_closed_async_connection_gives_an_error_of_ours(empty_postgres: str):
    """Issue 10: asyncpg's own, one that was given back to its pool, and SQLAlchemy's."""
    asyncpg = pytest.importorskip("asyncpg")
    apps = Apps(empty_postgres)
    note = apps().job(jobs.note)
    async with asyncpg_transaction(empty_postgres) as caller:
        pass
    async with sqlalchemy_asyncpg_connection(empty_postgres) as other:
        pass
    async with asyncpg.create_pool(empty_postgres, min_size=1, max_size=1) as pool:
        async with pool.acquire() as given_back:
            pass
        for connection in (caller.connection, other.connection, given_back):
            with pytest.raises(InvalidOptionError, match="connection is closed"):
                await note.using(connection=connection).aenqueue("never")
    assert count(empty_postgres, "job") == 0
    apps.close()


async def test_asyncpg_outside_a_transaction_stores_at_once(empty_postgres: str):
    """api.md Submitting: it commits each statement by itself there, and the job is whole."""
    asyncpg = pytest.importorskip("asyncpg")
    apps = Apps(empty_postgres)
    note = apps().job(jobs.note)
    connection = await asyncpg.connect(empty_postgres)
    await note.using(connection=connection, business_key="b", tags=["t"]).aenqueue("stored")
    assert count(empty_postgres, "job") == 1
    assert not connection.is_in_transaction()
    with pytest.raises(InvalidOptionError, match=r"connection is async \(asyncpg\), which enqueue\(\) cannot await"):
        note.using(connection=connection).enqueue("never")
    await connection.close()
    apps.close()
