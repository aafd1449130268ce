"""Submitting: one by one, in bulk, from many threads and tasks, and what travels unharmed."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, count
from windlass import JobStatus, Priority, SerializationError, Windlass

NASTY = [
    "",
    " ",
    "\\",
    "\\N",
    "\\.",
    "\t\n\r",
    '"{},',
    "NULL",
    "null",
    "'; DROP TABLE x; --",
    "\0",
    "%s %(x)s :x",
    "😀é\u2028",
]


@pytest.mark.parametrize("number", [1, 7, 1500])
def test_bulk_handles_come_in_the_order_of_the_calls(app: Windlass, apps: Apps, number: int):
    """J1.2: one insert; ids grow in the order of the calls, so that order is the order of running too."""
    add = app.job(jobs.add)
    handles = app.enqueue_many(add.bind(n, 1) for n in range(number))
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
    assert len({handle.id for handle in handles}) == number == count(apps.url, "job")
    assert app.get(handles[-1].id).args == (number - 1, 1)


async def test_bulk_submission_from_a_loop(app: Windlass):
    """api.md: `aenqueue_many`; an empty list is no error."""
    add = app.job(jobs.aadd)
    async with app.worker():
        handles = await app.aenqueue_many([add.bind(n, n) for n in range(150)])
        assert await asyncio.gather(*(handle.aresult(timeout=LONG) for handle in handles)) == [
            2 * n for n in range(150)
        ]
    assert await app.aenqueue_many([]) == []


def test_an_empty_bulk_submission_stores_nothing(app: Windlass, apps: Apps):
    """api.md: no calls, no handles."""
    assert app.enqueue_many([]) == []
    assert count(apps.url, "job") == 0


@pytest.mark.parametrize("bulk", [1, 20], ids=["few", "many"])
def test_texts_of_every_kind_are_stored_unchanged(app: Windlass, bulk: int):
    """J1.1: as arguments, params, keys and tags, one by one and by COPY."""
    echo = app.job(jobs.echo_anything)
    with app.worker():
        handles = app.enqueue_many(
            [echo.using(params={"text": text}, correlation_id="c'\\x").bind([text]) for text in NASTY * bulk]
        )
        assert [handle.result(timeout=LONG) for handle in handles] == [[text] for text in NASTY] * bulk
    for handle, text in zip(handles, NASTY, strict=False):
        job = app.get(handle.id)
        assert (job.args, job.params["text"], job.correlation_id) == (([text],), text, "c'\\x")


def test_keys_and_tags_with_quotes_and_backslashes_are_kept(app: Windlass):
    """J1.4: what is printable is allowed."""
    odd = "a'b\"c\\d,{e}%f:g;😀"
    handle = app.job(jobs.add).using(idempotency_key=odd, business_key=odd, tags=[odd]).enqueue(1, 2)
    job = app.get(handle.id)
    assert (job.idempotency_key, job.business_key, job.tags) == (odd, odd, (odd.lower(),))
    assert app.job(jobs.add).using(idempotency_key=odd).enqueue(1, 2).id == handle.id


def test_a_text_that_is_no_unicode_is_refused(app: Windlass, apps: Apps):
    """J1.1: lone surrogates cannot be stored, and are named."""
    with pytest.raises(SerializationError, match="value"):
        app.job(jobs.note).enqueue("\ud800")
    assert count(apps.url, "job") == 0


def test_a_call_is_a_value(app: Windlass):
    """api.md: binding stores nothing; a call may be enqueued twice, and changed without changing."""
    add = app.job(max_retries=2)(jobs.add)
    call = add.bind(1, 2)
    urgent = call.using(priority=Priority.CRITICAL, queue="urgent")
    first, second, third = call.enqueue(), call.enqueue(), urgent.enqueue()
    assert len({first.id, second.id, third.id}) == 3
    jobs_found = [app.get(handle.id) for handle in (first, second, third)]
    assert [(job.queue, job.priority, job.max_retries) for job in jobs_found] == [
        ("default", 2, 2),
        ("default", 2, 2),
        ("urgent", 4, 2),
    ]


def test_32_threads_enqueue_at_once(app: Windlass, apps: Apps):
    """J1.2: callers share commits; each gets its own job, and a bad one among them affects no other."""
    add, note = app.job(jobs.add), app.job(jobs.note)
    together = Barrier(32)

    def enqueue(n: int) -> list:
        together.wait(LONG)
        if n == 13:
            with pytest.raises(SerializationError):
                note.enqueue("\ud800")
        return [add.enqueue(n, m) for m in range(5)]

    with app.worker(), ThreadPoolExecutor(32) as pool:
        placed = list(pool.map(enqueue, range(32)))
        found = [[handle.result(timeout=LONG) for handle in handles] for handles in placed]
    assert found == [[n + m for m in range(5)] for n in range(32)]
    assert count(apps.url, "done") == 160


async def test_32_tasks_enqueue_at_once(app: Windlass, apps: Apps):
    """J1.2: the same on a loop, with one caller that gives up in the middle."""
    add = app.job(jobs.aadd)

    async def enqueue(n: int) -> list:
        return [await add.aenqueue(n, m) for m in range(5)]

    async with app.worker():
        impatient = asyncio.create_task(enqueue(99))
        tasks = [asyncio.create_task(enqueue(n)) for n in range(32)]
        await asyncio.sleep(0)
        impatient.cancel()
        placed = await asyncio.gather(*tasks)
        found = [[await handle.aresult(timeout=LONG) for handle in handles] for handles in placed]
    assert found == [[n + m for m in range(5)] for n in range(32)]
    assert count(apps.url, "job") - 160 in range(6), "who gave up has stored some of his jobs, or none"


async def test_threads_and_tasks_mix(app: Windlass):
    """design 5: sync `enqueue` on a loop, `aenqueue` beside it, `enqueue` on threads."""
    add = app.job(jobs.aadd)
    async with app.worker():
        handles = [add.enqueue(0, 1), await add.aenqueue(1, 1), await asyncio.to_thread(add.enqueue, 2, 1)]
        assert [await handle.aresult(timeout=LONG) for handle in handles] == [1, 2, 3]


def test_a_job_enqueued_without_a_worker_waits_for_one(app: Windlass, apps: Apps):
    """Promise: a committed enqueue is never lost, also when its application is closed at once."""
    short_lived = apps()
    handle = short_lived.job(jobs.add).enqueue(1, 2)
    short_lived.close()
    assert app.get(handle.id).status is JobStatus.PENDING
    app.job(jobs.add)
    with app.worker():
        assert app.handle(handle.id).result(timeout=LONG) == 3


def test_jobs_enqueue_jobs(app: Windlass):
    """J3.6: from threads and from the worker's own loop, blocking and awaited, with one slot to run them in."""
    jobs.APPS["waiting"] = app
    app.job(jobs.add)
    more, amore = app.job(jobs.enqueue_more), app.job(jobs.aenqueue_more)
    with app.worker(concurrency=1):
        for job in (more, amore):
            found = [app.handle(job_id).result(timeout=LONG) for job_id in job.enqueue(5).result(timeout=LONG)]
            assert found == [1, 2, 3, 4, 5]
