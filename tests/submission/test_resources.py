"""A resource that is not configured: an error at enqueue, or a failure if it was deleted since."""

import sqlite3
from typing import Any

import psycopg
import pytest

from tests.engine import jobs
from tests.engine.apps import Apps, count, settled
from tests.support.facts import is_sqlite, path_of, rows
from windlass import JobStatus, UnknownResourceError, Windlass


def nothing_is_stored(url: str) -> bool:
    return [count(url, table) for table in ("job", "hot", "key", "live_key", "job_tag")] == [0] * 5


def test_an_unknown_resource_is_an_error_at_enqueue(app: Windlass, apps: Apps):
    """J6.2: it names the resource and says what to do; nothing is stored of the call."""
    job = app.job(resource="stripe", business_key="order-7")(jobs.add)
    with pytest.raises(UnknownResourceError, match=r"stripe.*configure_resource\('stripe', max_concurrent=5\)"):
        job.enqueue(1, 2)
    assert nothing_is_stored(apps.url)
    app.configure_resource("stripe", 1)
    assert job.enqueue(1, 2).status() is JobStatus.PENDING


async def test_the_async_twin_refuses_too(app: Windlass, apps: Apps):
    """J6.2: `aenqueue` like `enqueue`."""
    with pytest.raises(UnknownResourceError, match="stripe"):
        await app.job(resource="stripe")(jobs.add).aenqueue(1, 2)
    assert nothing_is_stored(apps.url)


def test_one_unknown_resource_among_many_calls_stores_none_of_them(app: Windlass, apps: Apps):
    """J6.2: all or none."""
    app.configure_resource("known", 1)
    add = app.job(jobs.add)
    with pytest.raises(UnknownResourceError, match="paypal"):
        app.enqueue_many(
            [add.bind(1, 2), add.using(resource="known").bind(1, 2), add.using(resource="paypal").bind(1, 2)]
        )
    assert nothing_is_stored(apps.url)


def borrowed(url: str) -> Any:
    if is_sqlite(url):
        return sqlite3.connect(path_of(url), isolation_level=None)
    return psycopg.connect(url)


def test_a_borrowed_connection_is_refused_and_stays_usable(app: Windlass, apps: Apps):
    """J6.2: the caller's own writes are not lost by it."""
    add = app.job(jobs.add)
    app.configure_resource("known", 1)
    connection = borrowed(apps.url)
    if is_sqlite(apps.url):
        connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnknownResourceError, match="stripe"):
        add.using(resource="stripe", connection=connection).enqueue(1, 2)
    kept = add.using(resource="known", connection=connection).enqueue(3, 4)
    connection.commit()
    connection.close()
    assert count(apps.url, "job") == 1
    assert app.get(kept.id).resource == "known"


def test_a_replacement_with_an_unknown_resource_is_refused(app: Windlass):
    """J6.2, J2.4: and the old job stays as it was."""
    add = app.job(jobs.add)
    old = add.using(delay=600).enqueue(1, 2)
    with pytest.raises(UnknownResourceError, match="stripe"):
        app.replace(old.id, add.using(resource="stripe").bind(3, 4))
    assert old.status() is JobStatus.PENDING


def test_a_missing_resource_fails_the_job_with_an_error_that_names_it(app: Windlass, apps: Apps):
    """J6.2: it does not wait for ever; no attempt is counted, since its body was not entered."""
    app.configure_resource("stripe", 1)
    handle = app.job(resource="stripe", max_retries=3)(jobs.note).enqueue("x")
    rows(apps.url, "DELETE FROM windlass_gate")
    assert app.explain(handle.id).code == "no_worker"
    with app.worker():
        job = settled(app, handle.id)
    assert (job.status, job.error_class, job.reason, job.attempts) == (
        JobStatus.FAILED,
        "UnknownResourceError",
        "non_retryable",
        0,
    )
    assert job.error is not None
    assert "stripe" in job.error
    assert jobs.seen == []
