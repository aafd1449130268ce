"""Settings given to an application reach what they are for."""

import os
from datetime import timedelta

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps
from tests.support import process_bodies as bodies
from windlass import CircuitsSettings, JobsSettings, JobStatus, NodeSettings, Priority, Settings
from windlass.engine import outlook, room
from windlass.testing import drain

SLOW = 120.0
"""Seconds for tests in which processes start on a busy machine."""
MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("interval", "waited", "first"),
    [(60, timedelta(minutes=10), "aged"), (0, timedelta(days=1), "high"), (900, timedelta(minutes=10), "high")],
    ids=["shorter", "off", "default"],
)
def test_the_boost_interval_of_an_application_decides_when_an_old_job_comes_first(
    apps: Apps, monkeypatch: pytest.MonkeyPatch, interval: int, waited: timedelta, first: str
):
    """J3.1: the setting jobs.boost_interval: one level per interval, 0 for none."""
    monkeypatch.setattr(room, "CLAIM_AHEAD", 0)
    app = apps(settings=Settings(jobs=JobsSettings(boost_interval=interval)))
    note = app.job(jobs.anote)
    aged = note.using(priority=Priority.LOWEST, run_at=app.parts.clock.now() - waited)
    handles = app.enqueue_many([aged.bind("aged"), note.using(priority=Priority.HIGH).bind("high")])
    with app.worker(concurrency=1):
        assert {handle.join(timeout=LONG) for handle in handles} == {JobStatus.SUCCEEDED}
    assert jobs.seen[0] == first


@pytest.mark.parametrize(("redact", "shown"), [(True, "[REDACTED]"), (False, "bob@example.com")])
def test_an_application_may_show_e_mail_addresses_in_errors(apps: Apps, redact: bool, shown: str):
    """J5.3: the setting jobs.redact_emails."""
    app = apps(settings=Settings(jobs=JobsSettings(redact_emails=redact)))
    handle = app.job(jobs.fail).enqueue("no user bob@example.com")
    drain(app)
    assert app.get(handle.id).error == f"ValueError: no user {shown}"


def test_an_application_may_keep_less_of_an_error(apps: Apps):
    """J5.3: the setting jobs.max_error_length."""
    app = apps(settings=Settings(jobs=JobsSettings(max_error_length=150)))
    handle = app.job(jobs.fail).enqueue("long " * 100)
    drain(app)
    error = app.get(handle.id).error
    assert error is not None
    assert len(error) == 150


def test_an_application_may_limit_the_memory_of_processes(sqlite_url: str):
    """J4.2: the setting node.process_memory_bytes."""
    apps = Apps(sqlite_url)
    app = apps(settings=Settings(node=NodeSettings(process_memory_bytes=256 * MEBIBYTE)))
    allocate = app.job(executor="process")(bodies.allocate)
    with app.worker():
        handle = allocate.enqueue(2000)
        assert handle.join(timeout=SLOW) is JobStatus.FAILED
    assert app.get(handle.id).error_class == "MemoryError"
    apps.close()


def test_an_application_may_replace_processes_after_each_job(sqlite_url: str):
    """J4.2: the setting node.process_jobs."""
    apps = Apps(sqlite_url)
    app = apps(settings=Settings(node=NodeSettings(process_jobs=1)))
    pid = app.job(executor="process")(bodies.pid)
    with app.worker():
        first, second = (pid.enqueue().result(timeout=SLOW) for _ in range(2))
    assert len({first, second, os.getpid()}) == 3
    apps.close()


def test_known_states_of_queues_and_circuits_are_at_most_a_second_old():
    """J6.1: by default; that a node looks again by then is tested with the setting circuits.refresh."""
    assert CircuitsSettings().refresh <= 1.0
    assert outlook.BUSY_FRESH <= 1.0
