"""Results of jobs that run elsewhere: waiting handles are notified, and do not depend on polling."""

import asyncio

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps
from tests.engine.remote_worker import remote_worker
from windlass import JobFailedError
from windlass.client import results


@pytest.fixture(autouse=True)
def _no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handles query once, and then only when notified: without notifications they would wait ten minutes."""
    monkeypatch.setattr(results, "FIRST_PAUSE", 600.0)
    monkeypatch.setattr(results, "LAST_PAUSE", 600.0)


def test_a_result_wakes_its_waiter_in_another_application(apps: Apps):
    """J3.6: a "done" notification on PostgreSQL, the watched file on SQLite."""
    working, asking = apps(), apps()
    working.job(jobs.add)
    add = asking.job(jobs.add)
    with working.worker():
        assert [add.enqueue(n, 1).result(timeout=LONG) for n in range(10)] == list(range(1, 11))


async def test_a_result_wakes_an_awaiting_task_in_another_application(apps: Apps):
    """J3.6: `aresult` alike, many at once."""
    working, asking = apps(), apps()
    working.job(jobs.add)
    add = asking.job(jobs.add)
    with working.worker():
        handles = [await add.aenqueue(n, 1) for n in range(10)]
        found = await asyncio.gather(*(handle.aresult(timeout=LONG) for handle in handles))
    assert found == list(range(1, 11))


async def test_a_result_wakes_its_waiter_in_another_process(apps: Apps):
    """J3.6: across two processes, results and failures, blocking and awaited."""
    app = apps()
    add, fail = app.job(jobs.add), app.job(jobs.fail)
    with remote_worker(apps.url):
        for n in range(3):
            handle = await add.aenqueue(n, 1)
            assert await handle.aresult(timeout=LONG) == n + 1
        later = await asyncio.to_thread(add.using(delay=0.2).enqueue, 20, 22)
        assert await asyncio.to_thread(later.result, LONG) == 42
        with pytest.raises(JobFailedError, match="far away"):
            await (await fail.aenqueue("far away")).aresult(timeout=LONG)


def test_a_handle_in_one_process_follows_a_job_enqueued_by_another(apps: Apps):
    """api.md: `app.handle(id)` needs nothing but the id."""
    enqueuing, following = apps(), apps()
    with remote_worker(apps.url):
        handle = enqueuing.job(jobs.add).using(delay=0.2).enqueue(1, 2)
        assert following.handle(handle.id).result(timeout=LONG) == 3
