"""SIGKILL of a worker: its jobs are finished by others, soon, and are charged for nothing."""

from collections import Counter

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import is_sqlite, one, outcomes, statuses
from tests.support.programs import SHORT_LEASES, Programs
from tests.support.waiting import until
from windlass import JobFailedError, JobStatus, Windlass

JOBS = 6
SHORTER_LEASES = {**SHORT_LEASES, "WINDLASS_NODE__HEARTBEAT_INTERVAL": "0.25"}


def started(programs: Programs, count: int) -> None:
    until(lambda: len(set(programs.ran("began"))) == count, f"{count} jobs to begin")


@pytest.fixture
def app(store_url: str):
    application = make_app(store_url)
    application.migrate()
    yield application
    application.close()


def test_jobs_of_a_killed_worker_are_finished_by_another_one(app: Windlass, store_url: str, programs: Programs):
    """J7.2, J7.4: SIGKILL in the middle of jobs; another node runs them again, and no attempt is charged."""
    first = programs.worker(store_url)
    killed = first.node
    handles = [app.bind(bodies.hold if n % 2 else bodies.hold_in_thread, n).enqueue() for n in range(JOBS)]
    started(programs, JOBS)
    second = programs.worker(store_url)
    saviour = second.node
    first.kill()
    programs.open_gate()
    assert [handle.result(90) for handle in handles] == list(range(JOBS))
    for handle in handles:
        job = app.get(handle.id)
        assert (job.status, job.attempts, job.crash_count, job.node) == (JobStatus.SUCCEEDED, 1, 1, saviour)
        lost, ran = app.history(handle.id)
        assert (lost.outcome, lost.node, lost.number) == ("lost", killed, 1)
        assert killed in (lost.error or "")
        assert (ran.outcome, ran.node, ran.number) == ("succeeded", saviour, 1)
    second.says(rf"node {killed} was lost; {JOBS} of its jobs are PENDING again")
    assert sorted(programs.ran()) == sorted(str(n) for n in range(JOBS))


def test_killing_a_worker_at_full_speed_loses_nothing(app: Windlass, store_url: str, programs: Programs):
    """J7.4, J4.3: SIGKILL between claims and commits; every job succeeds once, and only what was lost runs again."""
    count = 1_500
    handles = app.enqueue_many([app.bind(bodies.note, n) for n in range(count)])
    first, second = programs.worker(store_url, 20), programs.worker(store_url, 20)
    until(lambda: first.node and second.node and len(programs.ran()) > count // 4, "the work to be under way")
    first.kill()
    until(lambda: statuses(store_url) == {"SUCCEEDED": count}, "all jobs to succeed")
    ran = Counter(programs.ran())
    assert {int(n) for n in ran} == set(range(count))
    written = outcomes(store_url)
    assert written["succeeded"] == count
    assert sum(ran.values()) - count <= written.get("lost", 0)
    assert handles[0].join(90) is JobStatus.SUCCEEDED
    if is_sqlite(store_url):
        assert one(store_url, "PRAGMA integrity_check") == "ok"


def test_a_job_that_kills_every_worker_ends_as_worker_lost(app: Windlass, store_url: str, programs: Programs):
    """P9.C9, J7.4: three redeliveries after a died worker, then FAILED as `worker_lost`; other work goes on."""
    workers = [programs.worker(store_url, 10, environ=SHORTER_LEASES) for _ in range(5)]
    for worker in workers:
        worker.says("^ready")
    poison = app.bind(bodies.kill_its_process, 0).using(business_key="poison").enqueue()
    with pytest.raises(JobFailedError) as failed:
        poison.result(90)
    assert failed.value.reason == "worker_lost"
    assert "lost 4 times" in failed.value.error
    job = app.get(poison.id)
    assert (job.attempts, job.crash_count) == (0, 4)
    assert [attempt.outcome for attempt in app.history(poison.id)] == ["lost"] * 4
    assert len(programs.ran("began")) == 4
    (survivor,) = [worker for worker in workers if worker.process.poll() is None]
    survivor.says(rf"job {poison.id} failed for good: its worker was lost too often")
    again = app.bind(bodies.note, 1).using(business_key="poison").enqueue()
    assert again.result(90) == 1


def test_at_default_settings_jobs_are_recovered_within_twenty_seconds(sqlite_url: str, programs: Programs):
    """P9.C5, J7.2: recovery in seconds, not minutes, with nothing configured. Takes most of these twenty seconds."""
    app = make_app(sqlite_url)
    first, second = (programs.worker(sqlite_url, 2, environ={}) for _ in range(2))
    assert first.node != second.node
    handles = [app.bind(bodies.hold, n).enqueue() for n in range(4)]
    started(programs, 4)
    first.kill()
    programs.open_gate()
    assert [handle.join(90) for handle in handles] == [JobStatus.SUCCEEDED] * 4
    assert outcomes(sqlite_url) == {"succeeded": 4, "lost": 2}
    assert statuses(sqlite_url) == {"SUCCEEDED": 4}
    app.close()
