"""Jobs that are canceled because another one takes their business key: waits end, and an event is published."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg

from tests.client.callers import path_of
from tests.engine import jobs
from tests.engine.apps import LONG, Apps, until
from windlass import JobCanceled, JobStatus, Windlass


def canceled_events(app: Windlass) -> list[JobCanceled]:
    events: list[JobCanceled] = []
    app.on(JobCanceled)(events.append)
    return events


async def test_a_superseded_job_is_published_as_canceled(app: Windlass):
    """J5.8: by `on_conflict="replace"`, sync or async, in the order in which they were superseded; and by `replace`."""
    events = canceled_events(app)
    note: Any = app.job(jobs.note).using(
        queue="mail", correlation_id="c1", business_key="order:7", on_conflict="replace", delay=60
    )
    first = await note.aenqueue("1")
    assert events == []
    second, third = await app.aenqueue_many([note.bind("2"), note.bind("3")])
    fourth = await app.areplace(third.id, app.job(jobs.note).using(business_key="order:7", delay=60).bind("4"))
    await app.acancel(fourth.id)
    await asyncio.to_thread(until, lambda: len(events) == 4)
    assert [(event.job_id, event.reason) for event in events] == [
        (first.id, "superseded"),
        (second.id, "superseded"),
        (third.id, "superseded"),
        (fourth.id, "canceled"),
    ]
    event = events[0]
    assert (event.target, event.queue, event.correlation_id) == ("tests.engine.jobs:note", "mail", "c1")
    assert (await app.aget(first.id)).reason == "superseded"


def test_waiting_on_a_handle_ends_when_its_job_is_superseded(apps: Apps):
    """J5.8, J1.5: in the process that superseded it, and in another one."""
    app, other = apps(), apps()
    note: Any = app.job(jobs.note).using(business_key="order:7", on_conflict="replace", delay=60)
    events = canceled_events(app)
    old = note.enqueue("old")
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(one.join, timeout=LONG) for one in (old, other.handle(old.id))]
        note.enqueue("new")
        assert [one.result(LONG) for one in waiting] == [JobStatus.CANCELED] * 2
    until(lambda: [event.job_id for event in events] == [old.id])


def test_uncommitted_changes_of_a_caller_are_not_published(apps: Apps):
    """J5.8, J1.5: on a connection of the caller's, nothing is known to have happened when `enqueue` returns."""
    app = apps()
    events = canceled_events(app)
    note: Any = app.job(jobs.note).using(business_key="order:7", on_conflict="replace", delay=60)
    old = note.enqueue("old")
    postgres = apps.url.startswith("postgresql")
    connection: Any = psycopg.connect(apps.url) if postgres else sqlite3.connect(path_of(apps.url))
    with closing(connection):
        note.using(connection=connection).enqueue("new")
        connection.rollback()
    assert (events, old.status()) == ([], JobStatus.PENDING)
