"""Wakeups. The workers of this file poll every ten minutes: whatever they run in time, they were woken for."""

import asyncio
from datetime import timedelta

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Gate, tried, until
from tests.engine.remote_worker import remote_worker
from windlass import Backoff, JobStatus, Windlass
from windlass.domain.clock import SystemClock


def asleep(app: Windlass) -> Windlass:
    """Wait until the worker of an application has found nothing and sleeps."""
    worker = app._worker
    assert worker is not None
    assert worker.node is not None
    ticked = worker.node.poller.signals.ticked
    ticked.arm()
    worker.node.wakeups.wake(())
    while (pause := ticked.wait_sync()) is not None and pause <= 1:
        pass
    ticked.disarm()
    return app


def test_a_local_enqueue_wakes_the_local_worker(apps: Apps):
    """J3.6: in process, from the thread that enqueues, one by one and in bulk, in queues old and new."""
    app = apps(settings=ONLY_WAKEUPS)
    add = app.job(jobs.add)
    with app.worker():
        asleep(app)
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
        asleep(app)
        assert [h.result(timeout=LONG) for h in app.enqueue_many([add.bind(n, n) for n in range(50)])][49] == 98
        asleep(app)
        assert add.using(queue="new", priority=7).enqueue(2, 2).result(timeout=LONG) == 4


async def test_an_async_enqueue_wakes_the_worker_on_the_same_loop(apps: Apps):
    """J3.6: `async with` alike."""
    app = apps(settings=ONLY_WAKEUPS)
    add = app.job(jobs.aadd)
    async with app.worker():
        for n in range(3):
            assert await (await add.aenqueue(n, 1)).aresult(timeout=LONG) == n + 1
        handle = await asyncio.to_thread(add.enqueue, 5, 5)
        assert await handle.aresult(timeout=LONG) == 10


def test_an_enqueue_of_another_application_wakes_the_worker(apps: Apps):
    """J3.6: NOTIFY after commit on PostgreSQL, the watched file on SQLite."""
    working, asking = apps(settings=ONLY_WAKEUPS), apps()
    working.job(jobs.add)
    add = asking.job(jobs.add)
    with working.worker():
        asleep(working)
        assert add.enqueue(1, 2).result(timeout=LONG) == 3
        asleep(working)
        assert add.using(queue="new").enqueue(3, 4).result(timeout=LONG) == 7
        asleep(working)
        handles = [add.enqueue(n, n) for n in range(20)]
        assert [handle.result(timeout=LONG) for handle in handles] == [2 * n for n in range(20)]


async def test_an_async_enqueue_of_another_application_wakes_the_worker(apps: Apps):
    """J3.6: `aenqueue` sends the same notification."""
    working, asking = apps(settings=ONLY_WAKEUPS), apps()
    working.job(jobs.add)
    add = asking.job(jobs.add)
    with working.worker():
        await asyncio.to_thread(asleep, working)
        assert await (await add.aenqueue(1, 2)).aresult(timeout=LONG) == 3


def test_an_enqueue_wakes_a_worker_in_another_process(apps: Apps):
    """J3.6: what a cluster lives on."""
    app = apps()
    add, process_id = app.job(jobs.add), app.job(jobs.process_id)
    with remote_worker(apps.url) as pid:
        assert process_id.enqueue().result(timeout=LONG) == pid
        assert add.enqueue(20, 22).result(timeout=LONG) == 42
        assert add.using(delay=0.2).enqueue(1, 1).result(timeout=LONG) == 2


def test_a_delay_is_slept_to_exactly(apps: Apps):
    """J3.6: the next due time is known and slept to, whichever process wrote it; never early."""
    app, other = apps(settings=ONLY_WAKEUPS), apps()
    add, other_add = app.job(jobs.add), other.job(jobs.add)
    with app.worker():
        soon = SystemClock().now() + timedelta(seconds=0.3)
        handles = [
            add.using(delay=0.3).enqueue(1, 1),
            add.using(run_at=soon, priority=4).enqueue(1, 2),
            other_add.using(delay=0.3, queue="elsewhere").enqueue(1, 3),
        ]
        assert [handle.result(timeout=LONG) for handle in handles] == [2, 3, 4]
    for handle in handles:
        job = app.get(handle.id)
        assert job.started_at is not None
        assert job.due_at is not None
        assert job.started_at >= job.due_at


def test_a_job_stored_before_the_worker_came_is_slept_to(apps: Apps):
    """J3.6: due times of earlier processes are found at the first look."""
    app = apps(settings=ONLY_WAKEUPS)
    handle = app.job(jobs.add).using(delay=0.3).enqueue(1, 2)
    with app.worker():
        assert handle.result(timeout=LONG) == 3


def test_an_earlier_job_cuts_the_sleep_to_a_later_one_short(apps: Apps):
    """J3.6: sleeping to a due time is ended by a wakeup, and the due time is not forgotten over it."""
    app = apps(settings=ONLY_WAKEUPS)
    note = app.job(jobs.note)
    with app.worker():
        last = note.using(delay=0.5).enqueue("last")
        first = note.enqueue("first")
        second = note.using(delay=0.2).enqueue("second")
        assert [handle.result(timeout=LONG) for handle in (last, first, second)] == ["last", "first", "second"]
    assert jobs.seen == ["first", "second", "last"]


def test_a_retry_and_a_snooze_are_slept_to_exactly(apps: Apps):
    """J3.6: every write of a due time is reported to the local poller at once."""
    app = apps(settings=ONLY_WAKEUPS)
    retry = app.job(max_retries=1, backoff=Backoff.fixed(0.3))(jobs.fail_at_first)
    with app.worker():
        handle = retry.enqueue("not yet")
        assert handle.result(timeout=LONG) == 2
        first, second = app.history(handle.id)
        assert second.started_at is not None
        assert (second.started_at - first.ended_at).total_seconds() >= 0.3
        jobs.seen.clear()
        assert app.job(jobs.asnooze_once).enqueue(0.3).result(timeout=LONG) == 1


def test_a_slot_that_frees_up_claims_again_at_once(apps: Apps, gate: Gate):
    """J3.6: a full node needs no wakeup to go on with what waits."""
    app = apps(settings=ONLY_WAKEUPS)
    hold, note = app.job(jobs.hold), app.job(jobs.note)
    with app.worker(concurrency=1):
        held = hold.enqueue(gate.name)
        gate.wait_entered()
        waiting = [note.enqueue(str(n)) for n in range(5)]
        gate.open()
        assert [handle.result(timeout=LONG) for handle in (held, *waiting)] == ["let go", *"01234"]
    assert jobs.seen == list("01234")


def test_jobs_that_a_draining_node_releases_wake_another_node(apps: Apps, gate: Gate):
    """J3.6, J7.6: what was cut off, and what had not started, is work again, and other nodes are notified."""
    leaving, staying = apps(settings=ONLY_WAKEUPS), apps(settings=ONLY_WAKEUPS)
    hold = leaving.job(jobs.ahold)
    staying.job(jobs.ahold)
    with leaving.worker(concurrency=1) as worker:
        held = hold.enqueue(gate.name)
        gate.wait_entered()
        gate.entered.clear()
        with staying.worker():
            asleep(staying)
            assert worker.drain(timeout=0.05) is False
            gate.wait_entered()
            gate.open()
            assert held.result(timeout=LONG) == "let go"
    assert [attempt.outcome for attempt in staying.history(held.id)] == ["released", "succeeded"]


def test_several_workers_share_what_they_are_woken_for(apps: Apps):
    """J3.6, J3.2: all nodes are woken, each job runs once."""
    workers = [apps(settings=ONLY_WAKEUPS) for _ in range(3)]
    for app in workers:
        app.job(jobs.note)
    note = workers[0].job(jobs.note)
    with workers[0].worker(concurrency=2), workers[1].worker(concurrency=2), workers[2].worker(concurrency=2):
        handles = [note.enqueue(str(n)) for n in range(60)]
        assert [handle.result(timeout=LONG) for handle in handles] == [str(n) for n in range(60)]
    assert sorted(jobs.seen, key=int) == [str(n) for n in range(60)]


def test_a_payload_too_long_for_a_notification_wakes_all_nodes(apps: Apps):
    """J3.6: PostgreSQL refuses 8,000 bytes, and with them the commit: the payload then names no queues."""
    working, asking = apps(settings=ONLY_WAKEUPS), apps()
    working.job(jobs.fail)
    fail = asking.job(jobs.fail)
    names = [f"{n:03}-{'q' * 60}" for n in range(130)]
    assert sum(len(f"{name}:2,") for name in names) > 8_000
    with working.worker():
        asleep(working)
        handles = asking.enqueue_many([fail.using(queue=name).bind("x") for name in names])
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.FAILED}
        asleep(working)
        assert asking.retry_many(limit=1_000) == len(names)
        until(lambda: all(len(tried(asking, handle)) == 2 for handle in handles))


def test_a_duplicate_does_not_drop_the_wakeup_of_the_job_before(apps: Apps):
    """J3.6: a notification owed for stored jobs does not go out with a commit that stores nothing."""
    worker, client = apps(settings=ONLY_WAKEUPS), apps()
    worker.job(jobs.add)
    add = client.job(jobs.add)
    keyed = add.using(idempotency_key="k")
    keyed.enqueue(0, 0)
    with worker.worker():
        for number in range(10):
            handles = [add.enqueue(number, 1), add.enqueue(number, 2)]  # the second owes its notification
            assert keyed.enqueue(0, 0).duplicate
            assert [handle.result(timeout=LONG) for handle in handles] == [number + 1, number + 2]
