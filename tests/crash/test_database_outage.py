"""PostgreSQL goes away and comes back: workers keep what they run, write it later, and need no restart."""

import threading
from functools import partial

import psycopg
import pytest

from tests.crash.programs import bodies
from tests.support.facts import end_other_sessions, outcomes, ran, rows, statuses
from tests.support.programs import Program, Programs
from tests.support.waiting import until
from windlass import JobStatus, StoreUnavailableError, Windlass
from windlass.testing.embedded_postgres import EmbeddedPostgres

# One server, which these tests stop and start, and so one test process for all of them.
pytestmark = pytest.mark.xdist_group("postgres_outage")

JOBS = 5


@pytest.fixture
def app(outage_app: Windlass) -> Windlass:
    return outage_app


def hold_jobs(app: Windlass, programs: Programs) -> list:
    handles = [app.bind(bodies.hold if n % 2 else bodies.hold_in_thread, n).enqueue() for n in range(JOBS)]
    until(lambda: len(programs.ran("began")) == JOBS, "all jobs to begin")
    return handles


def left_in_good_order(*workers: Program) -> None:
    for worker in workers:
        worker.terminate()
    assert [worker.exit_code() for worker in workers] == [0] * len(workers)


@pytest.mark.parametrize("immediately", [False, True], ids=["shut down", "crashed"])
def test_outcomes_of_an_outage_are_written_when_the_database_is_back(
    app: Windlass, server: EmbeddedPostgres, url: str, programs: Programs, immediately: bool
):
    """J7.8: workers keep what they run, lose nothing, go on by themselves; an enqueue meanwhile says what is wrong."""
    worker = programs.worker(url, environ={})
    node = worker.node
    handles = hold_jobs(app, programs)
    server.stop_server(immediately=immediately)
    worker.says(r"heartbeat failed|recovery failed|poller failed")
    programs.open_gate()
    until(lambda: len(programs.ran()) == JOBS, "the bodies to end without a database")
    with pytest.raises(StoreUnavailableError, match=r"PostgreSQL 127\.0\.0\.1:\d+/\S+ does not answer"):
        app.bind(bodies.note, 100).enqueue()
    assert worker.process.poll() is None
    server.start_server()
    late = app.bind(bodies.note, 101).enqueue()
    assert [handle.result(90) for handle in handles] == list(range(JOBS))
    assert late.result(90) == 101
    assert sorted(int(n) for n in programs.ran()) == [*range(JOBS), 101]
    assert statuses(url) == {"SUCCEEDED": JOBS + 1}
    assert rows(url, "SELECT DISTINCT node, attempts, crash_count FROM windlass_done") == [(node, 1, 0)]
    assert outcomes(url) == {"succeeded": JOBS + 1}
    worker.says(r"works again after \d+ failures")
    left_in_good_order(worker)


def test_an_outage_longer_than_every_lease_takes_no_job_from_nodes_that_live(
    app: Windlass, server: EmbeddedPostgres, url: str, programs: Programs
):
    """J7.8, J7.2: no node could renew a lease, so none is lost: the first node back does not mark the others lost."""
    workers = [programs.worker(url, 3) for _ in range(2)]
    names = {worker.node for worker in workers}
    handles = hold_jobs(app, programs)
    server.stop_server(immediately=True)
    until(lambda: all("heartbeat failed" in worker.printed for worker in workers), "beats to fail")
    pause_for_leases_to_end()
    server.start_server()
    programs.open_gate()
    assert [handle.result(90) for handle in handles] == list(range(JOBS))
    assert sorted(int(n) for n in programs.ran()) == list(range(JOBS))
    assert outcomes(url) == {"succeeded": JOBS}
    assert {row[0] for row in rows(url, "SELECT DISTINCT node FROM windlass_done")} == names
    assert "lost" not in "".join(worker.printed for worker in workers)
    left_in_good_order(*workers)


def pause_for_leases_to_end() -> None:
    """Leases of SHORT_LEASES end 1.5 s after the last beat; there is no database to ask whether they have."""
    threading.Event().wait(2.5)


def test_a_worker_stopped_during_an_outage_exits_and_logs_what_it_could_not_write(
    app: Windlass, server: EmbeddedPostgres, url: str, programs: Programs
):
    """J7.6, J7.8: it does not wait for ever, its exit code is not that of a clean drain, another node does the work."""
    worker = programs.worker(url)
    assert worker.node
    handles = hold_jobs(app, programs)
    server.stop_server(immediately=True)
    programs.open_gate()
    until(lambda: len(programs.ran()) == JOBS, "the bodies to end without a database")
    worker.terminate()
    assert worker.exit_code() == 3
    worker.says("the store does not answer: some outcomes were not written; these jobs run again elsewhere")
    server.start_server()
    successor = programs.worker(url)
    assert [handle.result(90) for handle in handles] == list(range(JOBS))
    assert outcomes(url) == {"lost": JOBS, "succeeded": JOBS}
    left_in_good_order(successor)


def has_run(programs: Programs, count: int) -> bool:
    return len(programs.ran()) > count


def test_killing_every_session_while_jobs_are_drained_loses_and_repeats_nothing(
    app: Windlass, url: str, programs: Programs
):
    """J7.8, J4.3: `pg_terminate_backend` on all sessions, again and again, in the middle of 2,000 jobs."""
    count = 2_000
    workers = [programs.worker(url, 20, environ={}) for _ in range(2)]
    assert all(worker.node for worker in workers)  # one that cannot start ends, and says why
    handles = app.enqueue_many([app.bind(bodies.note, n) for n in range(count)])
    killed = 0
    with psycopg.connect(url, autocommit=True) as administrator:
        for share in range(1, 9):
            until(partial(has_run, programs, count * share // 10), "the work to go on")
            killed += end_other_sessions(administrator)
    assert killed > 8
    until(lambda: statuses(url) == {"SUCCEEDED": count}, "all jobs to succeed")
    assert sorted(int(n) for n in programs.ran()) == list(range(count))
    assert ran(url) == {"succeeded": count}
    assert rows(url, "SELECT DISTINCT attempts, crash_count FROM windlass_done") == [(1, 0)]
    assert handles[-1].join(90) is JobStatus.SUCCEEDED
    left_in_good_order(*workers)


def test_connections_that_died_while_idle_are_not_used(app: Windlass, server: EmbeddedPostgres, url: str):
    """J7.8: after a restart of the server the first enqueue is stored; no caller pays for a dead connection."""
    app.bind(bodies.note, 1).enqueue()
    server.restart()
    handle = app.bind(bodies.note, 2).enqueue()
    assert handle.status() is JobStatus.PENDING
    assert statuses(url) == {"PENDING": 2}


def test_a_worker_that_starts_during_an_outage_waits_for_the_database(
    app: Windlass, server: EmbeddedPostgres, url: str, programs: Programs
):
    """J7.8: `run_worker()` waits, says once for what, and starts by itself."""
    handle = app.bind(bodies.note, 1).enqueue()
    server.stop_server()
    worker = programs.worker(url)
    worker.says(
        r"WARNING windlass\.worker: the store is not reachable, waiting up to 60 s for it: PostgreSQL .*does not answer"
    )
    server.start_server()
    assert worker.node
    assert handle.result(90) == 1
    assert worker.printed.count("the store is not reachable") == 1
    left_in_good_order(worker)
