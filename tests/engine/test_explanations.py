"""`app.explain`: every code, through the real API, on every store."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.engine import gated_jobs, jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Gate, Shop, on_loop, settled, until
from tests.support.facts import literal, rows
from windlass import Backoff, Explanation, JobHandle, JobNotFoundError, Windlass
from windlass.domain.clock import SystemClock
from windlass.domain.lanes import MOST_LANES

ALLOWED = ["tests.engine.jobs", "tests.engine.gated_jobs"]


@pytest.fixture
def quiet(apps: Apps) -> Windlass:
    """An application that looks for work only when it is woken."""
    return apps(settings=ONLY_WAKEUPS, allow=ALLOWED)


def code(app: Windlass, handle: JobHandle[Any]) -> str:
    found = app.explain(handle.id)
    assert isinstance(found, Explanation)
    return found.code


def test_the_reason_of_a_waiting_job_without_workers(quiet: Windlass):
    """api.md explain: not due, paused, its queue paused, no worker; always the first that must be out of the way."""
    app = quiet
    add = app.job(jobs.add)
    assert code(app, add.enqueue(1, 2)) == "no_worker"
    later = SystemClock().now() + timedelta(hours=1)
    found = app.explain(add.using(run_at=later).enqueue(1, 2).id)
    assert (found.code, found.until) == ("not_due", later)
    paused = add.enqueue(1, 2)
    paused.pause()
    assert code(app, paused) == "paused"
    waits = add.using(queue="mail").enqueue(1, 2)
    app.pause_queue("mail")
    assert code(app, waits) == "queue_paused"
    canceled = add.enqueue(1, 2)
    canceled.cancel()
    assert code(app, canceled) == "canceled"


def test_a_worker_of_other_queues_does_not_help(quiet: Windlass):
    app = quiet
    waits = app.job(queue="mail")(jobs.add).enqueue(1, 2)
    with app.worker(queues=["web"]):
        assert code(app, waits) == "no_worker_for_queue"
    assert code(app, waits) == "no_worker"


def test_running_and_ended_jobs_are_explained_as_such(quiet: Windlass, gate: Gate):
    app = quiet
    with app.worker():
        running = app.job(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
        found = app.explain(running.id)
        assert (found.code, found.until) == ("running", None)
        assert app.nodes()[0].id in found.message
        gate.open()
        assert running.result(timeout=LONG) == "let go"
        failed = app.job(jobs.fail).enqueue("no")
        settled(app, failed.id)
    assert code(app, running) == "succeeded"
    assert app.explain(failed.id).code == "failed"
    assert "(retry_exhausted)" in app.explain(failed.id).message


def test_a_job_that_waits_for_its_next_attempt_explains_the_last_error(quiet: Windlass):
    app = quiet
    again = app.job(max_retries=2, backoff=Backoff.fixed(600))(jobs.fail)
    with app.worker():
        handle = again.enqueue("no")
        until(lambda: app.get(handle.id).attempts == 1)
        found = app.explain(handle.id)
    assert found.code == "waiting_for_retry"
    assert found.message == "it waits for its next attempt, 1 attempt has failed: ValueError: no"
    assert found.until == app.get(handle.id).due_at


def test_a_job_that_waits_for_a_full_worker_is_explained_as_ready(quiet: Windlass, gate: Gate):
    app = quiet
    with app.worker(concurrency=1):
        app.job(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
        waits = app.job(jobs.add).enqueue(1, 2)
        assert code(app, waits) == "ready"
        gate.open()
        assert waits.result(timeout=LONG) == 3


def test_a_ready_job_is_explained_when_more_limits_have_jobs_than_one_poll_reads(quiet: Windlass, gate: Gate):
    """J3.1, J3.4: the order is exact among the lanes of one look; with more of them others may start before it."""
    app = quiet
    app.configure_resource("stripe", 1)
    add = app.job(resource="stripe")(jobs.add)
    with app.worker(concurrency=1):
        app.job(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
        calls = [add.using(resource_key=str(number)).bind(1, 2) for number in range(MOST_LANES + 1)]
        handles = app.enqueue_many(calls[:MOST_LANES])
        found = app.explain(handles[0].id)
        assert (found.code, "at a time" in found.message) == ("ready", False)
        handles += app.enqueue_many(calls[MOST_LANES:])
        found = app.explain(handles[0].id)
        assert found.code == "ready"
        assert found.message.endswith(
            "; jobs wait behind more than 64 limits and keys, of which a worker looks at 64 at a time,"
            " so jobs behind others may start before it"
        )
        assert "at a time" not in app.explain(app.job(jobs.add).enqueue(1, 2).id).message
        gate.open()
        assert [handle.result(timeout=LONG) for handle in handles] == [3] * len(handles)


def test_the_limit_that_holds_a_job_back_is_named(quiet: Windlass, gate: Gate):
    """J6.1, J6.2, J1.7: permit, rate, circuit, queue; through the store, for every caller."""
    app = quiet
    app.configure_resource("stripe", 1, retry_delay=600)
    app.configure_resource("paypal", None, rate=1, per="hour")
    app.limit_queue("mail", rate=1, per="hour", create=True)
    app.limit_queue("fax", concurrency=0, create=True)
    add = app.job(jobs.add)
    with app.worker():
        app.job(resource="stripe", resource_key="acme")(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
        full = add.using(resource="stripe", resource_key="acme").enqueue(1, 2)
        found = app.explain(full.id)
        assert found.code == "permit_full"
        assert found.message == "resource stripe for acme lets 1 job run at a time, and has 1"

        assert add.using(resource="paypal").enqueue(1, 2).result(timeout=LONG) == 3
        found = app.explain(add.using(resource="paypal").enqueue(1, 2).id)
        assert found.code == "rate_limited"
        assert found.until is not None
        assert timedelta(minutes=59) < found.until - SystemClock().now() < timedelta(minutes=64)

        assert add.using(queue="mail").enqueue(1, 2).result(timeout=LONG) == 3
        assert code(app, add.using(queue="mail").enqueue(1, 2)) == "queue_rate_limited"
        assert code(app, add.using(queue="fax").enqueue(1, 2)) == "queue_full"

        app.circuit("gateway").open(create=True)
        assert code(app, add.using(circuit="gateway").enqueue(1, 2)) == "circuit_open"
        gate.open()


def test_a_circuit_on_trial_is_explained(quiet: Windlass, gate: Gate):
    app = quiet
    app.configure_circuit("gateway", minimum_calls=1, open_wait=0.1, trials=1)
    with app.worker():
        settled(app, app.job(circuit="gateway")(gated_jobs.call_gateway).enqueue(1).id)
        app.job(circuit="gateway", priority=9)(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
        assert code(app, app.job(circuit="gateway")(jobs.anote).enqueue("x")) == "circuit_on_trial"
        gate.open()


def test_a_missing_resource_is_explained_before_the_job_fails(quiet: Windlass, apps: Apps):
    app = quiet
    app.configure_resource("stripe", 1)
    with app.worker(queues=["other"]) as worker:
        handle = app.job(resource="stripe", queue="other", delay=600)(jobs.add).enqueue(1, 2)
        assert worker.node is not None
        on_loop(worker, worker.node.poller.stop())  # it watches a SQLite file, and would fail the job
        rows(apps.url, "DELETE FROM windlass_gate")
        assert code(app, handle) == "not_due"
        _make_due(apps.url, handle)
        assert code(app, handle) == "unknown_resource"


def _make_due(url: str, handle: JobHandle[Any]) -> None:
    """Behind the worker's back, which therefore does not claim it."""
    rows(url, f"UPDATE windlass_hot SET due = 1 WHERE id = {literal(url, handle.id)}")


def test_a_target_that_no_worker_knows_is_explained(apps: Apps, shop: Shop):
    """J6.3: left to nodes that know it."""
    enqueuing = apps(settings=ONLY_WAKEUPS, allow=[shop.name])
    working = apps(settings=ONLY_WAKEUPS)
    working.job(jobs.add)
    handle = enqueuing.bind(shop.load("def charge() -> None: ...").charge).enqueue()
    shop.unload()
    with working.worker():
        until(lambda: code(enqueuing, handle) == "target_unknown")
        assert f"{shop.name}:charge" in enqueuing.explain(handle.id).message


def test_states_that_are_to_come_are_explained_already(quiet: Windlass, apps: Apps):
    """J8: followers that are not released, and waits for signals, as the store will hold them."""
    app = quiet
    follower, waiter = (app.job(jobs.add).enqueue(1, 2) for _ in range(2))
    rows(apps.url, f"UPDATE windlass_hot SET due = NULL WHERE id = {literal(apps.url, follower.id)}")
    rows(apps.url, f"UPDATE windlass_hot SET status = 'WAITING' WHERE id = {literal(apps.url, waiter.id)}")
    assert code(app, follower) == "not_released"
    assert code(app, waiter) == "waiting_for_signal"


async def test_the_async_twin_and_unknown_ids(quiet: Windlass):
    """api.md: `JobNotFoundError` from `explain`."""
    handle = await quiet.job(jobs.add).aenqueue(1, 2)
    assert await quiet.aexplain(handle.id) == quiet.explain(handle.id) == quiet.explain(str(handle.id))
    with pytest.raises(JobNotFoundError):
        quiet.explain(uuid4())
    with pytest.raises(JobNotFoundError):
        await quiet.aexplain(uuid4())
