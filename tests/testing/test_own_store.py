"""The kit on a store of the test's own choosing, where jobs are enqueued in the test's own transactions."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from tests.testing import kit_shop
from tests.testing.kit_shop import charge, seen
from windlass import JobNotFoundError, JobStatus, Windlass
from windlass.testing import NoWorkerError, advance, drain, inline, isolated


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()


@pytest.fixture
def shop(store_url: str) -> Iterator[Windlass]:
    """The application on a SQLite file and on a PostgreSQL database in turn."""
    with isolated(kit_shop.app, url=store_url) as app:
        app.migrate()
        yield app


@pytest.fixture
def connection(store_url: str, shop: Windlass) -> Iterator[sqlite3.Connection | psycopg.Connection]:
    """A connection of the test's own, with an open transaction as soon as it is used."""
    if store_url.startswith("sqlite"):
        with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as mine:
            yield mine
    else:
        with closing(psycopg.connect(store_url)) as own:
            yield own


def test_waiting_for_a_job_that_nothing_runs_fails_at_once(shop: Windlass):
    """api.md Testing: on any store, not only in memory."""
    handle = charge.enqueue(42)
    for wait in (handle.result, handle.join):
        with pytest.raises(NoWorkerError, match=r"drain\(app\)"):
            wait()
    with shop.worker():
        assert handle.result(timeout=90) == "charged 42 EUR"


async def test_awaiting_a_job_that_nothing_runs_fails_at_once(shop: Windlass):
    handle = await charge.aenqueue(42)
    with pytest.raises(NoWorkerError):
        await handle.ajoin()


def test_inline_runs_jobs_of_the_callers_transaction_when_their_result_is_requested(
    shop: Windlass, connection: sqlite3.Connection
):
    """api.md Testing: Windlass does not know of the commit, so that is when they can run."""
    with inline(shop):
        handle = charge.using(connection=connection).enqueue(42)
        connection.commit()
        assert handle.status() is JobStatus.PENDING
        assert handle.result() == "charged 42 EUR"
        another = charge.using(connection=connection).enqueue(43)
        connection.commit()
        assert another.join() is JobStatus.SUCCEEDED


async def test_inline_does_so_on_a_loop_too(shop: Windlass, connection: sqlite3.Connection):
    with inline(shop):
        handle = charge.using(connection=connection).enqueue(42)
        connection.commit()
        assert await handle.aresult() == "charged 42 EUR"


@pytest.mark.parametrize("ask", [drain, lambda app: charge.enqueue(1), lambda app: advance(app, 1)])
def test_the_next_thing_that_runs_jobs_runs_them_too(shop: Windlass, connection: sqlite3.Connection, ask):
    with inline(shop):
        handle = charge.using(connection=connection).enqueue(42)
        connection.commit()
        ask(shop)
        assert handle.status() is JobStatus.SUCCEEDED


def test_without_a_commit_there_is_no_job_to_run(shop: Windlass, connection: sqlite3.Connection):
    with inline(shop):
        handle = charge.using(connection=connection).enqueue(42)
        connection.rollback()
        with pytest.raises(JobNotFoundError):
            handle.result()
    assert seen == []
