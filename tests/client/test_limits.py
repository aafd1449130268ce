"""Limits of queues around a running worker: concurrency and rate, for the whole cluster, changed while jobs run."""

from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Gate, until
from tests.support.facts import rows
from windlass import InvalidOptionError, JobHandle, JobStatus, Windlass
from windlass.stores.plans.claims import FOLD_EVERY

ALLOWED = ["tests.engine.jobs"]


def limited(apps: Apps, **limit: Any) -> Windlass:
    app = apps(settings=ONLY_WAKEUPS, allow=ALLOWED)
    app.limit_queue("mail", **limit, create=True)
    return app


def held(app: Windlass, gate: Gate, count: int, **options: Any) -> list[JobHandle[Any]]:
    hold = app.job(queue="mail", **options)(jobs.ahold)
    return app.enqueue_many([hold.bind(gate.name) for _ in range(count)])


def running(app: Windlass, handles: list[JobHandle[Any]]) -> int:
    return [handle.status() for handle in handles].count(JobStatus.RUNNING)


@pytest.mark.parametrize("behind", [{}, {"resource": "stripe"}], ids=["plain", "with a resource"])
def test_a_queue_runs_no_more_than_its_limit_and_the_next_start_at_once(apps: Apps, gate: Gate, behind: dict[str, Any]):
    """J1.7: with slots to spare, whatever else its jobs wait for."""
    app = limited(apps, concurrency=2)
    app.configure_resource("stripe", 5, retry_delay=600)
    with app.worker(concurrency=50):
        handles = held(app, gate, 6, **behind)
        until(lambda: running(app, handles) == 2)
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3, "other queues go on"
        assert running(app, handles) == 2
        assert app.explain(handles[-1].id).code == "queue_full"
        gate.open()
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert [len(app.history(handle.id)) for handle in handles] == [1] * 6


def test_two_nodes_share_the_limit_of_a_queue(apps: Apps, gate: Gate):
    """J1.7: for the whole cluster; a place freed on one node is taken on the other."""
    one, two = limited(apps, concurrency=3), apps(settings=ONLY_WAKEUPS, allow=ALLOWED)
    with one.worker(), two.worker():
        handles = held(one, gate, 9)
        until(lambda: running(one, handles) == 3)
        assert two.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
        assert running(one, handles) == 3
        gate.open()
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}


def test_a_limit_is_changed_and_lifted_while_jobs_run(apps: Apps, gate: Gate):
    """J1.7: what runs counts; no option given lifts it."""
    app = apps(settings=ONLY_WAKEUPS, allow=ALLOWED)
    with app.worker():
        handles = held(app, gate, 3)
        until(lambda: running(app, handles) == 3)
        app.limit_queue("mail", concurrency=4, create=True)
        handles += held(app, gate, 5)
        until(lambda: running(app, handles) == 4)
        app.limit_queue("mail", concurrency=5, create=True)
        until(lambda: running(app, handles) == 5)
        app.limit_queue("mail")
        until(lambda: running(app, handles) == 8)
        app.limit_queue("mail", concurrency=1, create=True)
        late = held(app, gate, 1)
        assert app.job(jobs.add).enqueue(1, 2).result(timeout=LONG) == 3
        assert running(app, late) == 0
        gate.open()
        assert {handle.join(timeout=LONG) for handle in handles + late} == {JobStatus.SUCCEEDED}


def test_a_limit_lifted_by_another_process_is_noticed(apps: Apps):
    """J1.7: while running, at once."""
    app, other = limited(apps, concurrency=0), apps(settings=ONLY_WAKEUPS)
    with app.worker():
        waits = app.job(queue="mail")(jobs.note).enqueue("x")
        until(lambda: app.explain(waits.id).code == "queue_full")
        other.limit_queue("mail")
        assert waits.result(timeout=LONG) == "x"


def test_a_rate_of_a_queue_is_kept_without_any_wakeup(apps: Apps):
    """J1.7, J3.6: the worker knows when the next ones may start, and needs no wakeup for it."""
    app = limited(apps, rate=5)
    note = app.job(queue="mail")(jobs.anote)
    with app.worker(concurrency=50):
        handles = app.enqueue_many([note.bind("x") for _ in range(12)])
        until(lambda: app.explain(handles[-1].id).code == "queue_rate_limited")
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    picked = [at for handle in handles if (at := app.history(handle.id)[-1].picked_at)]
    assert len(picked) == 12
    for start in picked:
        assert sum(0 <= (other - start).total_seconds() < 1 for other in picked) <= 5


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"concurrency": -1}, "concurrency must be a whole number of at least 0, or None for no limit, got -1"),
        ({"concurrency": 2.5}, "concurrency must be a whole number"),
        ({"concurrency": True}, "concurrency must be a whole number"),
        ({"rate": 0}, "rate must be a whole number of at least 1.*less than one a second is written per minute"),
        ({"rate": 10**10}, "rate must be a whole number"),
        ({"rate": 5, "per": "week"}, "per must be one of 'second', 'minute', 'hour', 'day', got 'week'"),
    ],
)
def test_a_bad_limit_is_refused(app: Windlass, arguments: dict[str, Any], complaint: str):
    """J1.7: naming what was wrong; nothing changes."""
    with pytest.raises(InvalidOptionError, match=complaint):
        app.limit_queue("mail", **arguments)
    with pytest.raises(InvalidOptionError, match="queue must be 1 to 64 characters"):
        app.limit_queue("my mail", concurrency=1)
    assert app.queues() == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"name": "my stripe", "max_concurrent": 1}, "resource must be 1 to 64 characters.*did you mean 'my-stripe'"),
        ({"name": "stripe", "max_concurrent": None}, "resource 'stripe' needs a limit: give max_concurrent, rate or"),
        ({"name": "stripe", "max_concurrent": "5"}, "max_concurrent must be a whole number"),
        ({"name": "stripe", "max_concurrent": 5, "retry_delay": 0}, "retry_delay must be more than 0 seconds"),
        ({"name": "stripe", "max_concurrent": 5, "retry_delay": -1}, "retry_delay must not be negative"),
        ({"name": "stripe", "max_concurrent": 5, "rate": 1, "per": "fortnight"}, "per must be one of"),
    ],
)
def test_a_bad_resource_is_refused(app: Windlass, arguments: dict[str, Any], complaint: str):
    """J6.2: naming what was wrong; nothing is stored."""
    with pytest.raises(InvalidOptionError, match=complaint):
        app.configure_resource(**arguments)
    assert app.resources() == []


async def test_the_async_twin_limits_too(apps: Apps):
    """api.md: every verb that touches the store has an async twin."""
    app = apps(settings=ONLY_WAKEUPS, allow=ALLOWED)
    await app.alimit_queue("mail", concurrency=0, create=True)
    async with app.worker():
        handle = await app.job(queue="mail")(jobs.anote).aenqueue("x")
        until_full = await app.aexplain(handle.id)
        assert until_full.code == "queue_full"
        await app.alimit_queue("mail")
        assert await handle.aresult(timeout=LONG) == "x"


def test_thousands_of_keys_are_all_listed(apps: Apps):
    """J6.2: page by page, in the order of names, each once."""
    app = apps()
    app.configure_resource("stripe", 5)
    app.configure_resource("stripe2", 5)
    columns = "(name, cap, retry_us, used_at)"
    for number in range(450):
        rows(apps.url, f"INSERT INTO windlass_gate {columns} VALUES ('resource:stripe/k{number:04}', 5, 1, 0)")
    found = [(resource.name, resource.key) for resource in app.resources()]
    assert found == [("stripe", None), *(("stripe", f"k{number:04}") for number in range(450)), ("stripe2", None)]
    app.configure_resource("stripe", 7)
    assert [resource.max_concurrent for resource in app.resources()] == [7] * 451 + [5]


def test_released_permits_are_subtracted_although_they_never_run_short(apps: Apps):
    """J1.7: what is given back is one row each until a claim counts it; with room to spare they must not pile up."""
    app = limited(apps, concurrency=1_000)
    add = app.job(queue="mail")(jobs.aadd)
    most = 0
    with app.worker():
        for number in range(3 * FOLD_EVERY):
            assert add.enqueue(number, 1).result(timeout=LONG) == number + 1
            most = max(most, len(rows(apps.url, "SELECT 1 FROM windlass_freed")))
    assert 1 < most <= FOLD_EVERY
