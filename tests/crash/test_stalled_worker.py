"""SIGSTOP of a worker past its lease, and work that only looks stalled."""

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import leases_that_ran_out, outcomes, statuses
from tests.support.freezing import while_no_write_runs
from tests.support.programs import Programs
from tests.support.waiting import until
from windlass import JobStatus, Windlass

JOBS = 4


@pytest.fixture
def app(store_url: str):
    application = make_app(store_url)
    application.migrate()
    yield application
    application.close()


def test_a_stalled_worker_abandons_its_jobs_and_continues_under_a_new_id(
    app: Windlass, store_url: str, programs: Programs
):
    """P9.C5b, J7.3, J2.1: it notices, logs it, ends what it ran (or has its late result refused), and works again."""
    first = programs.worker(store_url)
    old_name = first.node
    handles = [app.bind(bodies.hold, n).enqueue() for n in range(JOBS)]
    until(lambda: len(programs.ran("began")) == JOBS, "all jobs to begin")
    second = programs.worker(store_url)
    saviour = second.node
    with while_no_write_runs(store_url):
        first.freeze()
    programs.open_gate()
    assert [handle.result(90) for handle in handles] == list(range(JOBS))
    verdicts = [app.get(handle.id) for handle in handles]
    assert {job.node for job in verdicts} == {saviour}

    first.resume()
    first.says(rf"node {old_name} lost its lease")
    for handle in handles:
        first.says(
            rf"job {handle.id}( \S+ was canceled or taken over by another node|.* came too late and was refused)"
        )
    assert [app.get(handle.id) for handle in handles] == verdicts  # nothing of the late results got through
    assert outcomes(store_url) == {"lost": JOBS, "succeeded": JOBS}

    second.terminate()
    assert second.exit_code() == 0
    more = [app.bind(bodies.note, n).enqueue() for n in range(100, 110)]
    assert [handle.result(90) for handle in more] == list(range(100, 110))
    (new_name,) = {str(app.get(handle.id).node) for handle in more}
    assert new_name != old_name
    assert f"-{first.pid}-" in new_name
    first.terminate()
    assert first.exit_code() == 0


def test_a_result_of_a_stalled_worker_is_refused_before_the_worker_has_noticed(
    app: Windlass, store_url: str, programs: Programs
):
    """J7.3, J2.1: by the fence. The body holds the loop, so nothing can end it before it returns."""
    first = programs.worker(store_url)
    assert first.node
    handle = app.bind(bodies.hold_the_loop, 1).enqueue()
    until(lambda: programs.ran("began"), "the body to begin")
    second = programs.worker(store_url)
    saviour = second.node
    with while_no_write_runs(store_url):
        first.freeze()
    programs.open_gate()
    assert handle.result(90) == 1
    verdict = app.get(handle.id)
    assert verdict.node == saviour
    first.resume()
    first.says(rf"job {handle.id}: the outcome 'succeeded' came too late and was refused")
    assert app.get(handle.id) == verdict
    assert outcomes(store_url) == {"lost": 1, "succeeded": 1}
    assert len(programs.ran()) == 2
    for worker in (first, second):
        worker.terminate()
        assert worker.exit_code() == 0


def test_a_stalled_worker_that_is_alone_keeps_its_jobs(app: Windlass, store_url: str, programs: Programs):
    """J7.2: no other node is there to recover them, and a node does not mark itself lost when it continues."""
    worker = programs.worker(store_url)
    node = worker.node
    handles = [app.bind(bodies.hold, n).enqueue() for n in range(JOBS)]
    until(lambda: len(programs.ran("began")) == JOBS, "all jobs to begin")
    with while_no_write_runs(store_url):
        worker.freeze()
    until(lambda: leases_that_ran_out(store_url) == 1, "its lease to run out")
    worker.resume()
    programs.open_gate()
    assert [handle.result(90) for handle in handles] == list(range(JOBS))
    assert {app.get(handle.id).node for handle in handles} == {node}
    assert outcomes(store_url) == {"succeeded": JOBS}
    assert len(programs.ran()) == JOBS
    assert "lost" not in worker.printed


def test_a_slow_job_that_blocks_the_loop_of_a_live_node_is_never_touched(
    app: Windlass, store_url: str, programs: Programs
):
    """J7.2: the heartbeat has a thread of its own; a loop blocked for longer than the lease does not look dead."""
    first = programs.worker(store_url)
    owner = first.node
    blocked = [app.bind(bodies.block_the_loop, 1, 3.0).enqueue(), app.bind(bodies.hold, 2).enqueue()]
    until(lambda: "1" in programs.ran("began"), "the loop to be blocked")
    second = programs.worker(store_url)
    assert second.node
    programs.open_gate()
    assert [handle.join(90) for handle in blocked] == [JobStatus.SUCCEEDED] * 2
    job = app.get(blocked[0].id)
    assert (job.node, job.attempts, job.crash_count) == (owner, 1, 0)
    assert (job.run_ms or 0) >= 2_900
    assert [attempt.outcome for attempt in app.history(blocked[0].id)] == ["succeeded"]
    assert sorted(programs.ran()) == ["1", "2"]
    assert statuses(store_url) == {"SUCCEEDED": 2}
    assert "lost" not in second.printed + first.printed
