"""Events: after the commit, in order, to sync and async listeners, whose failures are their own."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tests.engine import jobs
from tests.engine.apps import LONG, Apps, settled, until
from windlass import (
    AlertRaised,
    Backoff,
    ConfigurationError,
    Event,
    JobCompleted,
    JobDeadLettered,
    JobFailed,
    JobRetrying,
    JobStarted,
    JobStatus,
    JobTimedOut,
    Windlass,
)


def kinds(events: Sequence[Event]) -> list[type[Event]]:
    return [type(event) for event in events]


def test_a_success_is_published_as_started_and_completed(app: Windlass):
    """J5.8: with job, target, queue, correlation id and times."""
    received: list[Any] = []
    app.on(Event)(received.append)
    add = app.job(jobs.add)
    with app.worker() as worker:
        assert worker.node is not None
        node = worker.node.id
        job = settled(app, add.using(queue="sums", correlation_id="c1").enqueue(1, 2).id)
    assert kinds(received) == [JobStarted, JobCompleted]
    for event in received:
        assert (event.job_id, event.target, event.queue, event.correlation_id) == (job.id, add.target, "sums", "c1")
    started, completed = received
    assert (started.attempt, started.node, started.at) == (1, node, job.started_at)
    assert (completed.attempt, completed.wait_ms, completed.run_ms) == (1, job.wait_ms, job.run_ms)
    assert completed.at == job.finished_at


def test_a_retry_is_published_with_the_stored_due_time(app: Windlass):
    """J5.8: `next_at` is `due_at` of the job, to the microsecond, however long the write took."""
    received: list[JobRetrying] = []
    app.on(JobRetrying)(received.append)
    fail = app.job(max_retries=1, backoff=Backoff.fixed(3600))(jobs.fail)
    handles = app.enqueue_many([fail.bind(str(number)) for number in range(3)])
    with app.worker():
        until(lambda: len(received) == len(handles))
    assert {event.job_id: event.next_at for event in received} == {
        handle.id: app.get(handle.id).due_at for handle in handles
    }


def test_a_failure_is_published_in_order_down_to_the_dead_letter(app: Windlass):
    """J5.8: JobFailed with will_retry, then JobRetrying or, strictly after it, JobDeadLettered, and its alert."""
    received: list[Any] = []
    app.on(Event)(received.append)
    fail = app.job(max_retries=1, backoff=Backoff.fixed(0.05))(jobs.fail)
    with app.worker():
        job = settled(app, fail.enqueue("token=abcdef123").id)
    assert kinds(received) == [JobStarted, JobFailed, JobRetrying, JobStarted, JobFailed, JobDeadLettered, AlertRaised]
    _, failed, retrying, again, last, dead, alert = received
    assert (failed.will_retry, failed.attempt, failed.error_class) == (True, 1, "ValueError")
    assert failed.error == "ValueError: token=[REDACTED]"
    assert (retrying.attempt, retrying.delay.total_seconds()) == (1, 0.05)
    assert retrying.next_at >= failed.at + retrying.delay
    assert again.attempt == 2
    assert (last.will_retry, last.attempt) == (False, 2)
    assert (dead.reason, dead.attempt, dead.error) == ("retry_exhausted", 2, "ValueError: token=[REDACTED]")
    assert len(dead.fingerprint) == 16
    assert (alert.job_id, alert.error_hash, alert.sample) == (job.id, dead.fingerprint, dead.error)
    assert job.status is JobStatus.FAILED


def test_a_timeout_is_published_before_its_failure(app: Windlass):
    """J5.8: JobTimedOut, JobFailed, JobDeadLettered."""
    received: list[Any] = []
    app.on(Event)(received.append)
    slow = app.job(timeout=0.1)(jobs.sleep_long)
    with app.worker():
        settled(app, slow.enqueue().id)
    assert kinds(received) == [JobStarted, JobTimedOut, JobFailed, JobDeadLettered, AlertRaised]


def test_a_denied_target_is_published_without_a_start(app: Windlass, apps: Apps):
    """J5.8: any failure is a JobFailed, also that of a body which was not entered."""
    received: list[Any] = []
    strict = apps()
    strict.on(Event)(received.append)
    strict.job(jobs.add)
    denied = app.job(jobs.note).enqueue("x")
    with strict.worker():
        settled(strict, denied.id)
    assert kinds(received) == [JobFailed, JobDeadLettered, AlertRaised]
    assert received[1].reason == "target_not_allowed"


def test_events_are_published_after_the_commit(app: Windlass, apps: Apps):
    """J5.8: a subscriber that reads the store finds what was published."""
    looking = apps()
    found: list[tuple[type[Event], JobStatus, int]] = []

    @app.on(Event)
    def look(event: Event) -> None:
        assert event.job_id is not None
        job = looking.get(event.job_id)
        if not isinstance(event, JobStarted):
            found.append((type(event), job.status, len(looking.history(event.job_id))))

    add, fail = app.job(jobs.add), app.job(max_retries=1, backoff=Backoff.fixed(3600))(jobs.fail)
    with app.worker():
        add.enqueue(1, 2).join(timeout=LONG)
        fail.enqueue("x")
        until(lambda: len(found) == 3)
    assert found == [
        (JobCompleted, JobStatus.SUCCEEDED, 1),
        (JobFailed, JobStatus.PENDING, 1),
        (JobRetrying, JobStatus.PENDING, 1),
    ]


def test_a_failing_subscriber_is_logged_and_does_not_affect_others(app: Windlass, caplog: pytest.LogCaptureFixture):
    """J5.8: neither other listeners nor jobs suffer; its secrets are not logged."""
    received: list[Any] = []

    @app.on(JobCompleted)
    def broken(event: JobCompleted) -> None:
        raise ValueError("password=hunter2")

    @app.on(JobCompleted)
    async def broken_too(event: JobCompleted) -> None:
        raise SystemExit(1)

    app.on(JobCompleted)(received.append)
    add = app.job(jobs.add)
    with app.worker():
        assert [add.enqueue(n, n).result(timeout=LONG) for n in range(3)] == [0, 2, 4]
    assert len(received) == 3
    failures = [record.getMessage() for record in caplog.records if record.name == "windlass.events"]
    assert len(failures) == 6
    assert any("broken failed on JobCompleted: ValueError: password=[REDACTED]" in line for line in failures)
    assert "hunter2" not in caplog.text


def test_async_listeners_run_on_the_workers_loop_and_sync_ones_beside_it(app: Windlass):
    """J5.8: a slow sync listener blocks no job."""
    places: dict[str, str] = {}

    @app.on(JobCompleted)
    async def on_loop(event: JobCompleted) -> None:
        await asyncio.sleep(0)
        places["async"] = threading.current_thread().name

    @app.on(JobCompleted)
    def on_thread(event: JobCompleted) -> None:
        places["sync"] = threading.current_thread().name

    add = app.job(jobs.add)
    with app.worker():
        add.enqueue(1, 2).join(timeout=LONG)
    assert places == {"async": "windlass-worker", "sync": "windlass subscribers"}


def test_a_listener_that_blocks_does_not_hold_up_jobs(app: Windlass):
    """J5.8: jobs go on while a listener takes its time."""
    let_go = threading.Event()

    @app.on(JobCompleted)
    def block(event: JobCompleted) -> None:
        let_go.wait(LONG)

    add = app.job(jobs.add)
    with app.worker():
        assert [add.enqueue(n, 1).result(timeout=LONG) for n in range(20)][-1] == 20
        let_go.set()


async def test_events_reach_async_listeners_on_the_callers_loop(app: Windlass):
    """J5.8: with `async with`, listeners are awaited on the same loop; a drain waits for them."""
    received: list[Any] = []

    @app.on(Event)
    async def listen(event: Event) -> None:
        await asyncio.sleep(0.01)
        received.append((type(event), asyncio.get_running_loop()))

    add = app.job(jobs.aadd)
    async with app.worker():
        await (await add.aenqueue(1, 2)).aresult(timeout=LONG)
    here = asyncio.get_running_loop()
    assert received == [(JobStarted, here), (JobCompleted, here)]


def test_events_of_many_jobs_are_published_once_and_in_order_per_job(app: Windlass):
    """J5.8: started before completed, for every job."""
    received: list[Any] = []
    app.on(Event)(received.append)
    add = app.job(jobs.aadd)
    with app.worker(concurrency=10):
        handles = app.enqueue_many([add.bind(n, n) for n in range(100)])
        for handle in handles:
            handle.join(timeout=LONG)
    by_job = {handle.id: kinds([event for event in received if event.job_id == handle.id]) for handle in handles}
    assert set(map(tuple, by_job.values())) == {(JobStarted, JobCompleted)}


def test_listening_to_what_is_no_event_is_refused(app: Windlass):
    """J5.8: the error says what to write."""
    with pytest.raises(ConfigurationError, match="event class"):
        app.on(ValueError)  # type: ignore[type-var]
