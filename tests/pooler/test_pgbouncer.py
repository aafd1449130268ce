"""Everything through PgBouncer in transaction mode, where no two transactions need to be on one session."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.crashing import stage_on
from tests.support.facts import one, outcomes, statuses
from tests.support.invariants import check_invariants
from tests.support.pgbouncer import PgBouncer
from tests.support.programs import ROOT, SHORT_LEASES, STEADY_LEASES, Programs
from tests.support.waiting import until
from windlass import Backoff, DuplicateBusinessKeyError, JobStatus, StoreUnavailableError, Windlass

pytestmark = pytest.mark.pgbouncer

QUICK_POLLS = {**STEADY_LEASES, "WINDLASS_POLLER__MIN_DELAY": "0.2", "WINDLASS_POLLER__MAX_DELAY": "0.5"}


@pytest.fixture
def app(pooled_url: str, programs: Programs) -> Iterator[Windlass]:
    with stage_on(pooled_url, programs) as stage:
        yield stage.app


def test_two_workers_that_share_four_sessions_run_every_job_once(
    app: Windlass, pg_url: str, pooled_url: str, programs: Programs
):
    """J3.2, J4.3, J5.5, J1.4, J1.5: submissions of all kinds, claims, retries, outcomes with callbacks, keys."""
    count, soon = 200, Backoff.fixed(0.1)
    calls = [app.bind(bodies.pay, n).using(on_success=bodies.follow) for n in range(0, count, 2)]
    calls += [app.bind(bodies.fail_until, n, 2).using(max_retries=1, backoff=soon) for n in range(1, count, 2)]
    keyed = app.bind(bodies.pay, count).using(idempotency_key="order", business_key="order", tags=["order"])
    first = keyed.enqueue()
    assert keyed.enqueue().duplicate
    with pytest.raises(DuplicateBusinessKeyError):
        app.bind(bodies.pay, count).using(business_key="order").enqueue()
    workers = [programs.worker(pooled_url, 20, environ=QUICK_POLLS) for _ in range(2)]
    assert workers[0].node != workers[1].node
    handles = app.enqueue_many(calls)
    assert first.result(90) == count
    assert [handle.join(90) for handle in handles] == [JobStatus.SUCCEEDED] * count
    until(lambda: statuses(pg_url) == {"SUCCEEDED": count + count // 2 + 1}, "the callbacks to run")
    assert sorted(int(n) for n in programs.ran()) == list(range(count + 1))
    assert Counter(programs.ran("followed")) == Counter(str(n) for n in range(0, count, 2))
    for worker in workers:
        worker.terminate()
        assert worker.exit_code() == 0
    check_invariants(pg_url)


def test_a_cancel_reaches_a_running_job_without_a_notification(
    app: Windlass, pg_url: str, pooled_url: str, programs: Programs
):
    """J2.2: within a heartbeat, by looking; what is canceled before it starts never starts."""
    worker = programs.worker(pooled_url, environ=QUICK_POLLS)
    assert worker.node
    runs, waits = app.bind(bodies.hold, 1).enqueue(), app.bind(bodies.note, 2).using(delay=3_600).enqueue()
    until(lambda: programs.ran("began"), "the body to begin")
    assert (runs.cancel(), waits.cancel(), waits.cancel()) == (True, True, False)
    worker.says(rf"job {runs.id} \S+ was canceled")
    assert (runs.status(), waits.status()) == (JobStatus.CANCELED, JobStatus.CANCELED)
    worker.terminate()
    assert worker.exit_code() == 0
    assert programs.ran() == []
    check_invariants(pg_url)


def test_jobs_of_a_killed_worker_are_recovered_by_another(
    app: Windlass, pg_url: str, pooled_url: str, programs: Programs
):
    """J7.2, J7.4, P9.C1, P9.C5: killed with jobs in its hands, and inside a transaction."""
    first = programs.worker(pooled_url, environ={**QUICK_POLLS, **SHORT_LEASES})
    assert first.node
    handles = [app.bind(bodies.hold, n).enqueue() for n in range(4)]
    until(lambda: len(programs.ran("began")) == 4, "the bodies to begin")
    first.kill()
    doomed = {**QUICK_POLLS, **SHORT_LEASES, "WINDLASS_FAILPOINTS": "recovery.attempt_written=kill@2"}
    assert programs.worker(pooled_url, environ=doomed).exit_code() == -9
    assert one(pg_url, "SELECT count(*) FROM windlass_attempt") == 0
    programs.open_gate()
    second = programs.worker(pooled_url, environ={**QUICK_POLLS, **SHORT_LEASES})
    assert [handle.result(90) for handle in handles] == [0, 1, 2, 3]
    assert outcomes(pg_url) == {"lost": 4, "succeeded": 4}
    second.terminate()
    assert second.exit_code() == 0
    check_invariants(pg_url)


def test_a_pooler_that_is_killed_and_restarted_costs_time_only(
    app: Windlass, pgbouncer: PgBouncer, pg_url: str, pooled_url: str, programs: Programs
):
    """J7.8: workers keep what they run, and write it when they can connect again."""
    worker = programs.worker(pooled_url, environ={})
    assert worker.node
    handles = [app.bind(bodies.hold if n % 2 else bodies.hold_in_thread, n).enqueue() for n in range(4)]
    until(lambda: len(programs.ran("began")) == 4, "the bodies to begin")
    pgbouncer.kill()
    try:
        programs.open_gate()
        until(lambda: len(programs.ran()) == 4, "the bodies to end")
        with pytest.raises(StoreUnavailableError, match="does not answer"):
            app.bind(bodies.note, 9).enqueue()
        worker.says("completer failed, trying again")
    finally:
        pgbouncer.start()
    assert [handle.result(90) for handle in handles] == [0, 1, 2, 3]
    assert outcomes(pg_url) == {"succeeded": 4}
    worker.terminate()
    assert worker.exit_code() == 0
    check_invariants(pg_url)


def test_new_work_of_other_processes_is_found_by_polling_and_the_banner_says_so(
    app: Windlass, pooled_url: str, programs: Programs, monkeypatch: pytest.MonkeyPatch
):
    """J3.6: LISTEN through a transaction pooler is accepted and delivers nothing, so there is no listener."""
    for name, value in {**QUICK_POLLS, "WINDLASS_URL": pooled_url}.items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "windlass", "worker", "tests.pooler.pooled_app:app"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as worker:
        assert worker.stdout is not None
        said = ""
        for line in worker.stdout:
            said += line
            if "ready: node" in line:
                break
        assert "in process, else polling (a pooler delivers no LISTEN)" in said
        assert app.bind(bodies.note, 1).enqueue().result(90) == 1
        worker.terminate()
        assert worker.wait(90) == 0
    assert programs.ran() == ["1"]


def test_an_enqueue_through_the_pooler_wakes_a_directly_connected_worker(
    app: Windlass, pg_url: str, programs: Programs
):
    """J3.6: NOTIFY gets through a pooler; the worker need not poll for it."""
    patient = {**STEADY_LEASES, "WINDLASS_POLLER__MIN_DELAY": "600", "WINDLASS_POLLER__MAX_DELAY": "600"}
    worker = programs.worker(pg_url, environ=patient)
    assert worker.node
    assert app.bind(bodies.note, 0).enqueue().result(90) == 0
    assert app.bind(bodies.note, 1).enqueue().result(90) == 1
    worker.terminate()
    assert worker.exit_code() == 0


def test_a_url_without_pooled_behind_a_pooler_is_refused_with_the_right_url(pooled_url: str, app: Windlass):
    """The pooler refuses session options; the message names the way out."""
    plain = make_app(pooled_url.partition("?")[0])
    with pytest.raises(StoreUnavailableError, match=r"unsupported startup parameter.*add \?pooled=true to the URL"):
        plain.bind(bodies.note, 1).enqueue()
    plain.close()
