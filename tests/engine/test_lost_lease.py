"""A node that was given up by the cluster: it notices, lets go of what it ran, and goes on under another name."""

import logging
from typing import Any

import pytest

from tests.engine import jobs, lost_lease_bodies
from tests.engine.apps import LONG, Apps, until
from windlass import JobStatus, NodeSettings, Settings, StaleClaimError, StopJob, Windlass
from windlass.domain.clock import VirtualClock
from windlass.stores.plans import cluster, leases
from windlass.worker import Worker

SELDOM = 600
"""Seconds between heartbeats: the test says when one comes."""


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def slow(apps: Apps, clock: VirtualClock) -> Windlass:
    """An application whose nodes send heartbeats only when the test advances the clock."""
    lost_lease_bodies.entered.clear()
    lost_lease_bodies.notified.clear()
    settings = Settings(node=NodeSettings(heartbeat_interval=SELDOM, recovery_interval=0.05, sweep_interval=0.05))
    return apps(settings=settings, clock=clock)


def lose(app: Windlass, worker: Worker, clock: VirtualClock) -> str:
    """The lease of a node expires, and another node marks it lost; returns the id it had."""
    assert worker.node is not None
    name = worker.node.id

    def given_up() -> bool:  # the first beat of a node that has just started may come in between, once
        clock.advance(10 * SELDOM)
        return app.database.run(cluster.mark_lost) == 1

    until(given_up)
    return name


def notice(worker: Worker, old_name: str) -> str:
    """The next heartbeat; gives the name that the node goes by from now on."""
    node = worker.node
    assert node is not None
    node.membership.heartbeat.wake()
    until(lambda: node.id != old_name)
    return node.id


def test_a_node_that_was_marked_lost_abandons_its_running_jobs(
    slow: Windlass, clock: VirtualClock, caplog: pytest.LogCaptureFixture
):
    """J7.3: coroutines are cancelled, threads get an error; both jobs run again, under the new id, and that counts."""
    bodies = (lost_lease_bodies.on_the_loop, lost_lease_bodies.on_a_thread)
    handles = [slow.job(body).enqueue(body.__name__) for body in bodies]
    worker = slow.worker()
    with caplog.at_level(logging.ERROR, "windlass.heartbeat"), worker:
        until(lambda: len(lost_lease_bodies.entered) == len(bodies))
        old_name = lose(slow, worker, clock)
        assert lost_lease_bodies.notified == [], "nobody told it yet"
        new_name = notice(worker, old_name)
        assert [handle.result(LONG) for handle in handles] == ["on_the_loop again", "on_a_thread again"]
        until(lambda: sorted(lost_lease_bodies.notified) == ["on_a_thread", "on_the_loop"])
    assert f"node {old_name} lost its lease" in caplog.text
    for handle in handles:
        job = slow.get(handle.id)
        assert (job.status, job.node, job.attempts, job.crash_count) == (JobStatus.SUCCEEDED, new_name, 1, 1)
        assert [attempt.outcome for attempt in slow.history(handle.id)] == ["lost", "succeeded"]


@pytest.mark.parametrize("body", [lost_lease_bodies.checking, lost_lease_bodies.reporting])
def test_a_body_whose_claim_was_lost_gets_an_error(slow: Windlass, clock: VirtualClock, body: Any):
    """J7.3, api.md StaleClaimError: from `check` and `progress`, as soon as its node knows; the job runs again."""
    handle = slow.job(body).enqueue(body.__name__)
    worker = slow.worker()
    with worker:
        until(lambda: lost_lease_bodies.entered)
        notice(worker, lose(slow, worker, clock))
        assert handle.result(LONG) == f"{body.__name__} again"
        until(lambda: lost_lease_bodies.notified)
    assert lost_lease_bodies.notified == [StaleClaimError.__name__]
    assert [attempt.outcome for attempt in slow.history(handle.id)] == ["lost", "succeeded"]


def test_a_body_whose_job_another_process_canceled_is_stopped(slow: Windlass, apps: Apps):
    """J2.2: its claim is gone too, but no other node has claimed it."""
    handle = slow.job(lost_lease_bodies.checking).enqueue("x")
    with slow.worker():
        until(lambda: lost_lease_bodies.entered)
        assert apps().cancel(handle.id)
        until(lambda: lost_lease_bodies.notified)
    assert lost_lease_bodies.notified == [StopJob.__name__]
    assert handle.status() is JobStatus.CANCELED


def test_a_node_that_was_given_up_claims_nothing_until_it_has_noticed(slow: Windlass, clock: VirtualClock):
    """J7.3: at once, by the store; then it goes on by itself."""
    note = slow.job(jobs.note)
    worker = slow.worker()
    with worker:
        assert note.enqueue("before").result(LONG) == "before"
        old_name = lose(slow, worker, clock)
        node = worker.node
        assert node is not None
        waiting = note.enqueue("after")
        node.poller.signals.ticked.arm()
        for _ in range(3):
            node.engine.work.changed()
            node.poller.signals.ticked.wait_sync()
        assert waiting.status() is JobStatus.PENDING
        new_name = notice(worker, old_name)
        assert waiting.result(LONG) == "after"
        assert slow.get(waiting.id).node == new_name
        until(lambda: [found.id for found in slow.nodes()] == [new_name])  # the old one is forgotten


def test_a_node_that_was_given_up_takes_up_its_duties_under_its_new_name(slow: Windlass, clock: VirtualClock):
    """J7.5, J7.3: whatever lease it held is free, and nothing of it is written under the old name."""
    slow.job(jobs.note)
    worker = slow.worker()
    with worker:
        node = worker.node
        assert node is not None
        old_name = lose(slow, worker, clock)
        sweeper = next(duty for duty in node.membership.duties if duty.name == "sweeper")
        sweeper.signals.ticked.arm()
        sweeper.signals.ticked.wait_sync()  # it may have begun before
        before = slow.database.read(leases.last_pass, leases.SWEEPER)
        for _ in range(3):
            sweeper.wake()
            sweeper.signals.ticked.wait_sync()
        assert slow.database.read(leases.last_pass, leases.SWEEPER) == before
        new_name = notice(worker, old_name)

        def swept() -> bool:
            seen = slow.database.read(leases.last_pass, leases.SWEEPER)
            return seen is not None and seen.passed_at == clock.micros()

        until(swept)
        assert new_name != old_name
