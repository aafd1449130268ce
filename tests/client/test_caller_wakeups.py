"""Wakeups of jobs enqueued on the caller's own connection. The workers of this file poll every ten minutes."""

import asyncio
from contextlib import closing

import psycopg
import pytest

from tests.client.callers import ASYNC, SYNC
from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps
from tests.engine.remote_worker import remote_worker
from tests.engine.test_wakeup import asleep


def kinds(url: str, known: list) -> list:
    store = "sqlite" if url.startswith("sqlite") else "postgres"
    return [kind for each, kind in known if each == store]


def test_a_commit_wakes_a_worker_in_another_process(apps: Apps):
    """J3.6: whichever kind of connection it was that committed."""
    add = apps().job(jobs.add)
    with remote_worker(apps.url):
        for kind in kinds(apps.url, SYNC):
            with kind(apps.url) as caller:
                handle = add.using(connection=caller.connection).enqueue(20, 22)
            assert handle.result(timeout=LONG) == 42, kind.__name__


async def test_a_commit_on_a_loop_wakes_a_worker_in_another_process(apps: Apps):
    """J3.6: async connections alike."""
    add = apps().job(jobs.add)
    with remote_worker(apps.url):
        for kind in kinds(apps.url, ASYNC):
            async with kind(apps.url) as caller:
                handle = await add.using(connection=caller.connection).aenqueue(20, 22)
            assert await handle.aresult(timeout=LONG) == 42, kind.__name__


def test_a_commit_wakes_the_worker_of_the_same_application(apps: Apps):
    """J3.6: the enqueue cannot wake it, coming before the commit; so the commit does, in queues old and new."""
    app = apps(settings=ONLY_WAKEUPS)
    add = app.job(jobs.add)
    with app.worker():
        for kind in kinds(apps.url, SYNC):
            asleep(app)
            with kind(apps.url) as caller:
                handle = add.using(connection=caller.connection, queue=kind.__name__).enqueue(1, 2)
                asleep(app)  # it has looked, and there was nothing yet
            assert handle.result(timeout=LONG) == 3, kind.__name__


async def test_a_commit_on_a_loop_wakes_the_worker_on_that_loop(apps: Apps):
    """J3.6: `async with app.worker()` alike."""
    app = apps(settings=ONLY_WAKEUPS)
    add = app.job(jobs.aadd)
    async with app.worker():
        for kind in kinds(apps.url, ASYNC):
            async with kind(apps.url) as caller:
                handle = await add.using(connection=caller.connection).aenqueue(1, 2)
            assert await asyncio.wait_for(handle.aresult(), LONG) == 3, kind.__name__


def test_a_delayed_job_is_slept_to(apps: Apps):
    """J3.6: the due time is known from the commit on."""
    app = apps(settings=ONLY_WAKEUPS)
    add = app.job(jobs.add)
    with app.worker():
        asleep(app)
        with kinds(apps.url, SYNC)[0](apps.url) as caller:
            handle = add.using(connection=caller.connection, delay=0.3).enqueue(1, 2)
        assert handle.result(timeout=LONG) == 3


@pytest.fixture
def notifications(empty_postgres: str):
    """The notifications of new work since the last call."""
    with closing(psycopg.connect(empty_postgres, autocommit=True)) as listener:
        listener.execute("LISTEN windlass_work")
        yield lambda: [notification.payload for notification in listener.notifies(timeout=0.5)]


def test_a_commit_sends_one_wakeup_and_a_rollback_none(empty_postgres: str, notifications):
    """J3.6: in the caller's transaction; however many jobs of one queue it stores. It has the mark of no process."""
    apps = Apps(empty_postgres)
    note = apps().job(jobs.note)
    with psycopg.connect(apps.url) as connection:
        for number in range(5):
            note.using(connection=connection).enqueue(str(number))
        assert notifications() == []
    assert notifications() == ["borrowed default:2"]
    with psycopg.connect(apps.url) as connection:
        note.using(connection=connection).enqueue("never")
        connection.rollback()
    assert notifications() == []
    apps.close()


def test_a_bulk_sends_one_wakeup(empty_postgres: str, notifications):
    """J3.6: for all its queues and levels together, in however many statements they are stored."""
    apps = Apps(empty_postgres)
    app = apps()
    note = app.job(jobs.note)
    for kind in kinds(apps.url, SYNC):
        with kind(apps.url) as caller:
            mine = note.using(connection=caller.connection)
            app.enqueue_many([mine.using(queue=f"q{n % 2}", priority=n % 2).bind(str(n)) for n in range(1_100)])
        assert notifications() == ["borrowed q0:0,q1:1"], kind.__name__
    apps.close()
