"""The order in which a worker starts jobs when some of them wait behind limits."""

from dataclasses import replace
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, ONLY_WAKEUPS, Apps, Gate, until
from windlass import CircuitsSettings, JobStatus, Priority, Windlass
from windlass.engine import outlook, room
from windlass.stores.plans import queues

BEHIND: dict[str, dict[str, Any]] = {
    "resource": {"resource": "stripe"},
    "key": {"resource": "stripe", "resource_key": "acme"},
    "circuit": {"circuit": "gateway"},
    "resource and circuit": {"resource": "stripe", "circuit": "gateway"},
}


UNHURRIED = replace(ONLY_WAKEUPS, circuits=CircuitsSettings(refresh=600))
"""What the worker read of the store is believed until it has changed."""


@pytest.fixture
def app(apps: Apps, monkeypatch: pytest.MonkeyPatch) -> Windlass:
    """An application whose worker claims one job at a time, as with bodies that take long."""
    monkeypatch.setattr(room, "CLAIM_AHEAD", 0)
    app = apps(settings=UNHURRIED, allow=["tests.engine.jobs"])
    app.configure_resource("stripe", 100)
    return app


@pytest.mark.parametrize("options", BEHIND.values(), ids=BEHIND)
def test_critical_jobs_behind_a_free_limit_start_before_lowest_ones_without(app: Windlass, options: dict[str, Any]):
    """J3.1, J3.4: a hundred free permits change nothing about the order."""
    note = app.job(jobs.anote)
    low, critical = note.using(priority=Priority.LOWEST), note.using(priority=Priority.CRITICAL, **options)
    handles = app.enqueue_many([call.bind(name) for _ in range(8) for call, name in ((low, "low"), (critical, "CRIT"))])
    with app.worker(concurrency=1):
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert jobs.seen == ["CRIT"] * 8 + ["low"] * 8


def test_a_critical_job_behind_a_limit_starts_next_also_when_it_comes_while_the_node_is_busy(
    app: Windlass, gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    """J3.1, J3.6: a node that gets all it asks for still learns of lanes that it did not know."""
    monkeypatch.setattr(outlook, "BUSY_FRESH", 0.0)
    note = app.job(jobs.anote)
    with app.worker(concurrency=1):
        app.job(jobs.ahold).enqueue(gate.name)
        gate.wait_entered()
        handles = app.enqueue_many([note.using(priority=Priority.LOWEST).bind("low") for _ in range(5)])
        handles.append(note.using(priority=Priority.CRITICAL, resource="stripe").enqueue("CRIT"))
        gate.open()
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert [name for name in jobs.seen if name in ("CRIT", "low")] == ["CRIT"] + ["low"] * 5


def test_a_busy_node_reads_further_lanes_when_one_look_does_not_show_all(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
):
    """J3.1: what comes first of all starts after one round through all lanes at the latest."""
    monkeypatch.setattr(queues, "MOST_LANES", 2)
    monkeypatch.setattr(outlook, "BUSY_FRESH", 0.0)
    note = app.job(jobs.anote)
    calls = [note.using(resource="stripe", resource_key=key).bind(key) for key in "abcdefgh" for _ in range(4)]
    calls.append(note.using(resource="stripe", resource_key="z", priority=Priority.CRITICAL).bind("CRIT"))
    handles = app.enqueue_many(calls)
    with app.worker(concurrency=1):
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert jobs.seen.index("CRIT") <= 4, "there are five windows of two lanes"


def test_a_long_backlog_behind_one_limit_delays_others_only_by_the_order(app: Windlass):
    """J3.1, J3.4: jobs that are due later come later, wherever they wait; those that are due earlier come first."""
    note = app.job(jobs.anote)
    calls = [note.using(resource="stripe").bind("first") for _ in range(10)]
    calls += [note.bind("second") for _ in range(5)]
    calls += [note.using(circuit="gateway").bind("third") for _ in range(5)]
    handles = [handle for call in calls for handle in app.enqueue_many([call])]
    with app.worker(concurrency=1):
        until(lambda: len(jobs.seen) == len(calls))
    assert jobs.seen == ["first"] * 10 + ["second"] * 5 + ["third"] * 5
    assert len(handles) == 20
