"""SIGTERM: a worker leaves, its work stays."""

import signal

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import one, outcomes, rows, statuses
from tests.support.programs import STEADY_LEASES, Programs
from tests.support.waiting import until
from windlass import JobStatus, Windlass

IMPATIENT = {**STEADY_LEASES, "WINDLASS_NODE__DRAIN_TIMEOUT": "0.5"}


@pytest.fixture
def app(store_url: str):
    application = make_app(store_url)
    application.migrate()
    yield application
    application.close()


def test_draining_one_of_two_workers_under_load_loses_nothing_and_runs_nothing_twice(
    app: Windlass, store_url: str, programs: Programs
):
    """J7.6, J4.3: unstarted claims go back, running jobs finish, the exit code is 0, no attempt is spent."""
    leaving, staying = (programs.worker(store_url, 20, environ=STEADY_LEASES) for _ in range(2))
    nodes = {leaving.node, staying.node}
    count = 800
    calls = [app.bind(bodies.work if n % 3 else bodies.work_in_thread, n, 0.02) for n in range(count)]
    handles = app.enqueue_many(calls)
    until(lambda: len(programs.ran()) > count // 6, "the work to be under way")
    leaving.terminate()
    assert len(programs.ran()) < count, "the drain should have come in the middle"
    assert leaving.exit_code() == 0
    assert [handle.join(90) for handle in handles] == [JobStatus.SUCCEEDED] * count
    assert sorted(int(n) for n in programs.ran()) == list(range(count))
    assert statuses(store_url) == {"SUCCEEDED": count}
    assert rows(store_url, "SELECT DISTINCT attempts, crash_count FROM windlass_done") == [(1, 0)]
    assert {row[0] for row in rows(store_url, "SELECT DISTINCT node FROM windlass_done")} == nodes
    assert set(outcomes(store_url)) <= {"succeeded", "released"}
    assert one(store_url, "SELECT count(*) FROM windlass_node") == 1, "who left in good order has signed off"
    staying.terminate()
    assert staying.exit_code() == 0


def test_jobs_that_outlast_the_drain_timeout_are_released_and_the_worker_exits_forced(
    app: Windlass, store_url: str, programs: Programs
):
    """J7.6: past the drain timeout jobs are cancelled and released without spending an attempt; exit code 3."""
    worker = programs.worker(store_url, environ=IMPATIENT)
    node = worker.node
    never = (bodies.never_return, bodies.never_end, bodies.never_end_in_thread, bodies.never_end_beside_the_loop)
    stuck = [app.bind(body, n).enqueue() for n, body in enumerate(never)]
    until(lambda: len(programs.ran("began")) == 4, "the bodies to begin")
    worker.terminate()
    assert worker.exit_code() == 3
    for handle in stuck:
        job = app.get(handle.id)
        assert (job.status, job.attempts, job.crash_count, job.node) == (JobStatus.PENDING, 0, 0, None)
        (attempt,) = app.history(handle.id)
        assert (attempt.outcome, attempt.node, attempt.number) == ("released", node, 1)
    assert programs.ran("ignored") == ["1"] * len(programs.ran("ignored"))
    assert one(store_url, "SELECT count(*) FROM windlass_node") == 0


def test_a_second_signal_forces_a_drain(app: Windlass, store_url: str, programs: Programs):
    """J7.6: the first signal drains, the second forces."""
    worker = programs.worker(store_url, environ=STEADY_LEASES)
    assert worker.node
    held = app.bind(bodies.hold, 1).enqueue()
    until(lambda: programs.ran("began"), "the body to begin")
    worker.terminate()
    worker.says("draining")
    worker.send(signal.SIGINT)
    assert worker.exit_code() == 3
    worker.says("again: stopping and releasing running jobs now")
    assert held.status() is JobStatus.PENDING
    successor = programs.worker(store_url, environ=STEADY_LEASES)
    programs.open_gate()
    assert held.result(90) == 1
    assert app.get(held.id).attempts == 1
    successor.terminate()
    assert successor.exit_code() == 0


def test_a_job_that_never_returns_times_out_and_does_not_hold_up_the_drain(
    app: Windlass, store_url: str, programs: Programs
):
    """J4.5, J7.6: the timeout is a failure; what still runs after it (threads cannot be killed) delays no other job."""
    worker = programs.worker(store_url, environ=STEADY_LEASES)
    assert worker.node
    handles = [
        app.bind(body, n).using(timeout=0.5).enqueue()
        for n, body in enumerate((bodies.never_return, bodies.never_end_in_thread))
    ]
    assert [handle.join(90) for handle in handles] == [JobStatus.FAILED] * 2
    for handle in handles:
        job = app.get(handle.id)
        assert (job.error_class, job.attempts, job.crash_count) == ("JobTimeoutError", 1, 0)
        assert "timeout of 0.5 s" in (job.error or "")
        worker.says(rf"job {handle.id} \S+ exceeded its timeout of 0.5 s")
    assert app.bind(bodies.note, 7).enqueue().result(90) == 7
    worker.terminate()
    assert worker.exit_code() == 0
