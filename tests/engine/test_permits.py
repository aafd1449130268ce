"""Permits of resources in a running worker: never too many, given back by every kind of end, waiters woken at once."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import IMPATIENT, LONG, ONLY_WAKEUPS, Apps, Gate, settled, until, waiting_again
from tests.support.facts import rows
from windlass import JobHandle, JobStatus, Windlass
from windlass.engine import timeouts

RARELY = 600.0
"""A retry delay that no test waits for: a job that gets a permit was woken."""


def gated(apps: Apps, permits: int = 1, **options: Any) -> Windlass:
    """An application that looks for work only when it is woken, with a resource `stripe`."""
    app = apps(settings=ONLY_WAKEUPS, allow=["tests.engine.jobs"], **options)
    app.configure_resource("stripe", permits, retry_delay=RARELY)
    return app


def in_use(app: Windlass) -> int:
    return sum(resource.in_use for resource in app.resources())


def follow(app: Windlass, **options: Any) -> JobHandle[Any]:
    """A job that waits for the same permit."""
    return app.job(resource="stripe", **options)(jobs.note).enqueue("followed")


def keeps_its_permit(app: Windlass, gate: Gate, following: JobHandle[Any]) -> None:
    """A body that goes on after its job's end has its permit until the gate opens, and the node goes on meanwhile."""
    assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
    assert (in_use(app), following.status()) == (1, JobStatus.PENDING)
    assert app.explain(following.id).code == "permit_full"
    gate.open()
    assert following.result(timeout=LONG) == "followed"
    until(lambda: in_use(app) == 0)


def end_by_return(app: Windlass) -> None:
    app.job(resource="stripe")(jobs.add).enqueue(1, 2)


def end_on_the_loop(app: Windlass) -> None:
    app.job(resource="stripe")(jobs.aadd).enqueue(1, 2)


def end_in_a_process(app: Windlass) -> None:
    app.job(resource="stripe", executor="process")(jobs.add).enqueue(1, 2)


def end_by_error(app: Windlass) -> None:
    app.job(resource="stripe")(jobs.fail).enqueue("no")


def end_by_exit(app: Windlass) -> None:
    app.job(resource="stripe")(jobs.raise_it).enqueue("system exit")


def end_by_interrupt_on_the_loop(app: Windlass) -> None:
    app.job(resource="stripe")(jobs.araise_it).enqueue("keyboard interrupt")


def end_by_retry(app: Windlass) -> None:
    app.job(resource="stripe", max_retries=1)(jobs.raise_it).enqueue("retry after")


def end_by_snooze(app: Windlass) -> None:
    app.job(resource="stripe")(jobs.asnooze_once).enqueue(RARELY)


def end_by_timeout(app: Windlass) -> None:
    app.job(resource="stripe", timeout=0.2)(jobs.sleep_long).enqueue()


def end_by_timeout_of_a_loop_on_a_thread(app: Windlass) -> None:
    app.job(resource="stripe", timeout=0.2)(jobs.loop_for_ever).enqueue()


def end_by_timeout_in_a_process(app: Windlass) -> None:
    app.job(resource="stripe", timeout=0.5, executor="process")(jobs.loop_for_ever).enqueue()


ENDS: list[Callable[[Windlass], None]] = [
    end_by_return,
    end_on_the_loop,
    end_in_a_process,
    end_by_error,
    end_by_exit,
    end_by_interrupt_on_the_loop,
    end_by_retry,
    end_by_snooze,
    end_by_timeout,
    end_by_timeout_of_a_loop_on_a_thread,
    end_by_timeout_in_a_process,
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_every_end_releases_the_permit_and_wakes_waiting_jobs(apps: Apps, end: Callable[[Windlass], None]):
    """J6.2, J4 step 11: success, failure, retry, snooze, timeout, an exit; the next one starts at once."""
    app = gated(apps)
    with app.worker():
        end(app)
        following = follow(app)
        assert following.result(timeout=LONG) == "followed"
        until(lambda: in_use(app) == 0)


def test_no_more_run_at_a_time_than_there_are_permits(apps: Apps, gate: Gate):
    """J6.2: with slots to spare; the others wait as PENDING, without an attempt."""
    app = gated(apps, permits=2)
    hold = app.job(resource="stripe")(jobs.ahold)
    with app.worker(concurrency=50):
        handles = app.enqueue_many([hold.bind(gate.name) for _ in range(6)])
        until(lambda: in_use(app) == 2)
        statuses = [handle.status() for handle in handles]
        assert sorted(statuses) == [JobStatus.PENDING] * 4 + [JobStatus.RUNNING] * 2
        gate.open()
        assert [handle.result(timeout=LONG) for handle in handles] == ["let go"] * 6
    assert in_use(app) == 0
    assert [len(app.history(handle.id)) for handle in handles] == [1] * 6


def test_a_canceled_coroutine_frees_its_permit_once_it_has_ended(apps: Apps, gate: Gate):
    """J6.2, J2.2: also after a cancel."""
    app = gated(apps)
    with app.worker():
        running = app.job(resource="stripe")(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
        following = follow(app)
        assert running.cancel()
        assert following.result(timeout=LONG) == "followed"
    assert in_use(app) == 0


def test_a_coroutine_that_ignores_its_cancel_keeps_its_permit(apps: Apps, gate: Gate):
    """J6.2: released when the body has ended, not when it was canceled."""
    app = gated(apps)
    with app.worker():
        running = app.job(resource="stripe")(jobs.swallow_cancellation).enqueue(gate.name)
        gate.wait_entered()
        following = follow(app)
        assert running.cancel()
        until(lambda: "cancelled" in jobs.seen)
        keeps_its_permit(app, gate, following)


def test_a_canceled_thread_keeps_its_permit_until_it_really_ends(apps: Apps, gate: Gate):
    """J6.2, J4.5: a thread cannot be killed; what it holds is in use for as long as it goes on."""
    app = gated(apps)
    with app.worker():
        running = app.job(resource="stripe")(jobs.sleep_then_return).enqueue(gate.name)
        gate.wait_entered()
        following = follow(app)
        assert running.cancel()
        assert running.join(timeout=LONG) is JobStatus.CANCELED
        keeps_its_permit(app, gate, following)
    assert jobs.seen == ["late", "followed"]


def test_a_canceled_process_job_frees_its_permit(apps: Apps, tmp_path: Any):
    """J6.2, J2.2: its process is killed, and with it the body."""
    app = gated(apps)
    with app.worker():
        running = app.job(resource="stripe", executor="process")(jobs.leave_a_mark_at_the_end).enqueue(
            str(tmp_path / "mark")
        )
        until(lambda: running.status() is JobStatus.RUNNING)
        following = follow(app)
        assert running.cancel()
        assert following.result(timeout=LONG) == "followed"
        until(lambda: in_use(app) == 0)


def test_a_thread_that_runs_on_after_its_timeout_keeps_its_permit(apps: Apps, gate: Gate):
    """J4.5, J6.2: its job has failed; the resource is used all the same."""
    app = gated(apps)
    with app.worker():
        stuck = app.job(resource="stripe", timeout=1)(jobs.sleep_then_return).enqueue(gate.name)
        following = follow(app)
        assert settled(app, stuck.id).error_class == "JobTimeoutError"
        keeps_its_permit(app, gate, following)
    assert jobs.seen == ["late", "followed"]


def test_a_retry_waits_for_the_permit_that_its_own_late_body_holds(apps: Apps, gate: Gate):
    """J4.5, J6.2: with one permit, two bodies of one job never overlap."""
    app = gated(apps)
    with app.worker():
        stuck = app.job(resource="stripe", timeout=3, max_retries=1)(jobs.sleep_then_return).enqueue(gate.name)
        waiting_again(app, stuck.id, attempts=1)
        assert app.explain(stuck.id).code == "permit_full"
        gate.open()
        assert stuck.result(timeout=LONG) == "late"
    assert in_use(app) == 0


def test_an_abandoned_coroutine_keeps_its_permit(apps: Apps, gate: Gate, monkeypatch: pytest.MonkeyPatch):
    """J4.5, J6.2: its slot is free, its permit is not."""
    monkeypatch.setattr(timeouts, "GRACE", 0.1)
    app = gated(apps)
    with app.worker(concurrency=1):
        stubborn = app.job(resource="stripe", timeout=1)(jobs.swallow_cancellation).enqueue(gate.name)
        following = follow(app)
        assert settled(app, stubborn.id).error_class == "JobTimeoutError"
        keeps_its_permit(app, gate, following)


def test_a_drain_releases_the_permits_of_released_jobs(apps: Apps, gate: Gate):
    """J7.6, J6.2: stopped bodies and claims that never began."""
    first = gated(apps)
    app = apps(settings=IMPATIENT, allow=["tests.engine.jobs"])
    with app.worker():
        running = app.job(resource="stripe")(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
    assert running.status() is JobStatus.PENDING
    assert in_use(app) == 0
    first.job(jobs.ahold)
    gate.open()
    with first.worker():
        assert running.result(timeout=LONG) == "let go"


def test_the_permit_of_a_thread_that_outlived_its_worker_is_released_when_it_ends(apps: Apps, gate: Gate):
    """J6.2, J7.6: the worker that was entered meanwhile is woken, and has it."""
    app = apps(settings=IMPATIENT, allow=["tests.engine.jobs"])
    app.configure_resource("stripe", 1, retry_delay=RARELY)
    with app.worker():
        running = app.job(resource="stripe")(jobs.sleep_then_return).enqueue(gate.name)
        gate.wait_entered()
    assert running.status() is JobStatus.PENDING
    with app.worker():
        assert (jobs.seen, in_use(app)) == ([], 1)
        gate.open()
        assert running.result(timeout=LONG) == "late"
    assert in_use(app) == 0


def test_a_waiter_on_another_node_is_woken(apps: Apps, gate: Gate):
    """J6.2: whichever node has the next one."""
    app, other = gated(apps), apps(settings=ONLY_WAKEUPS)
    hold = app.job(resource="stripe", queue="here")(jobs.ahold)
    note = other.job(resource="stripe", queue="there")(jobs.note)
    with app.worker(queues=["here"]), other.worker(queues=["there"]):
        hold.enqueue(gate.name)
        gate.wait_entered()
        waits = note.enqueue("followed")
        until(lambda: app.explain(waits.id).code == "permit_full")
        gate.open()
        assert waits.result(timeout=LONG) == "followed"


class Bus:
    """A coordinator of the user's own, for the applications of one process."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[str, int], None]] = []

    def notify_new_work(self, queue: str, priority: int) -> None:
        for callback in self._callbacks:
            callback(queue, priority)

    def listen(self, callback: Callable[[str, int], None]) -> None:
        self._callbacks.append(callback)

    def close(self) -> None:
        self._callbacks.clear()


def test_a_waiter_on_another_node_is_woken_by_a_coordinator_too(apps: Apps, gate: Gate):
    """J6.2, J3.6: the store says nothing then, so the coordinator has to."""
    bus = Bus()
    app, other = gated(apps, coordinator=bus), apps(settings=ONLY_WAKEUPS, coordinator=bus)
    with app.worker(queues=["here"]):
        app.job(resource="stripe", queue="here")(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
        note = other.job(resource="stripe", queue="there")(jobs.note)
        with other.worker(queues=["there"]):
            waits = note.enqueue("followed")
            until(lambda: app.explain(waits.id).code == "permit_full")
            gate.open()
            assert waits.result(timeout=LONG) == "followed"


def test_keys_do_not_wait_for_each_other(apps: Apps, gate: Gate):
    """J6.2: one tenant's jobs hold up no other tenant's, and each key has as many permits."""
    app = gated(apps)
    hold, note = app.job(resource="stripe")(jobs.ahold), app.job(resource="stripe")(jobs.note)
    with app.worker():
        hold.using(resource_key="acme").enqueue(gate.name)
        gate.wait_entered()
        blocked = note.using(resource_key="acme").enqueue("acme")
        assert note.using(resource_key="a/b ü%").enqueue("odd").result(timeout=LONG) == "odd"
        assert note.enqueue("none").result(timeout=LONG) == "none"
        assert blocked.status() is JobStatus.PENDING
        used = {resource.key: (resource.max_concurrent, resource.in_use) for resource in app.resources()}
        assert used == {None: (1, 0), "acme": (1, 1), "a/b ü%": (1, 0)}
        gate.open()
        assert blocked.result(timeout=LONG) == "acme"


def test_permits_are_changed_while_jobs_run(apps: Apps, gate: Gate):
    """J6.2: more let more through at once; fewer wait until enough have left."""
    app = gated(apps)
    hold = app.job(resource="stripe")(jobs.ahold)
    with app.worker():
        handles = app.enqueue_many([hold.bind(gate.name) for _ in range(6)])
        until(lambda: in_use(app) == 1)
        app.configure_resource("stripe", 4, retry_delay=RARELY)
        until(lambda: in_use(app) == 4)
        app.configure_resource("stripe", 2, retry_delay=RARELY)
        for handle in [handle for handle in handles if handle.status() is JobStatus.RUNNING][:2]:
            assert handle.cancel()
        until(lambda: in_use(app) == 2)
        assert [handle.status() for handle in handles].count(JobStatus.RUNNING) == 2
        gate.open()
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED, JobStatus.CANCELED}


def test_permits_changed_by_another_process_are_noticed(apps: Apps, gate: Gate):
    """J6.2: for the whole cluster and at once."""
    app, other = gated(apps), apps(settings=ONLY_WAKEUPS)
    hold = app.job(resource="stripe")(jobs.ahold)
    with app.worker():
        app.enqueue_many([hold.bind(gate.name) for _ in range(3)])
        until(lambda: in_use(app) == 1)
        other.configure_resource("stripe", 3, retry_delay=RARELY)
        until(lambda: in_use(app) == 3)
        gate.open()


def test_a_lost_notification_of_a_free_permit_costs_only_the_retry_delay(apps: Apps):
    """J6.2: `retry_delay` is for lost notifications. Here the permit is released in the store, without one."""
    app = apps(settings=ONLY_WAKEUPS, allow=["tests.engine.jobs"])
    app.configure_resource("stripe", 0, retry_delay=0.2)
    waits = follow(app)
    with app.worker():
        until(lambda: app.explain(waits.id).code == "permit_full")
        assert waits.status() is JobStatus.PENDING
        rows(apps.url, "UPDATE windlass_gate SET cap = 1 WHERE name = 'resource:stripe'")
        assert waits.result(timeout=LONG) == "followed"


async def test_the_async_twins_do_the_same(apps: Apps):
    """api.md: every verb that touches the store has an async twin."""
    app = apps(settings=ONLY_WAKEUPS, allow=["tests.engine.jobs"])
    await app.aconfigure_resource("stripe", 3, rate=7, per="minute", retry_delay=2)
    (stripe,) = await app.aresources()
    assert [stripe] == app.resources()
    shown = (stripe.name, stripe.key, stripe.max_concurrent, stripe.rate, stripe.per, stripe.retry_delay)
    assert shown == ("stripe", None, 3, 7, "minute", 2.0)
    async with app.worker():
        handle = await app.job(resource="stripe")(jobs.aadd).aenqueue(1, 2)
        assert await handle.aresult(timeout=LONG) == 3
