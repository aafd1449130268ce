"""The network to PostgreSQL is slow or swallows everything, or a worker stands still in the middle of a transaction."""

from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import one, outcomes, ran, statuses
from tests.support.invariants import check_invariants
from tests.support.programs import SHORT_LEASES, Programs
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import until
from windlass import JobStatus, PollerSettings, Settings, StoreUnavailableError, Windlass
from windlass.stores.postgres import listener, session, thread_wire, wire
from windlass.stores.postgres.url import conninfo

JOBS = 40
TIMEOUT = 1.5
"""Seconds after which a call without an answer is given up here; 30 in real life."""


@pytest.fixture
def app(proxy: TcpProxy, programs: Programs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Windlass]:
    del programs  # its environment is where bodies write
    monkeypatch.setattr(session, "STATEMENT_TIMEOUT", TIMEOUT)
    application = make_app(proxy.unpooled_url)
    application.migrate()
    yield application
    application.close()


def test_a_silent_network_is_detected_and_jobs_continue_once_it_is_back(
    app: Windlass, proxy: TcpProxy, pg_url: str, programs: Programs, caplog: pytest.LogCaptureFixture
):
    """J7.8: no call waits for ever on a line that is open and silent, neither a worker's nor a caller's."""
    held = [app.bind(bodies.hold if n % 2 else bodies.hold_in_thread, n).enqueue() for n in range(4)]
    with app.worker(concurrency=10):
        until(lambda: len(programs.ran("began")) == 4, "the bodies to begin")
        proxy.stop_forwarding()
        programs.open_gate()
        until(lambda: len(programs.ran()) == 4, "the bodies to end without a database")
        with pytest.raises(StoreUnavailableError, match="does not answer"):
            app.bind(bodies.note, 100).enqueue()
        until(lambda: "completer failed" in caplog.text and "heartbeat failed" in caplog.text, "both to notice")
        proxy.forward_again()
        assert [handle.result(90) for handle in held] == [0, 1, 2, 3]
        assert app.bind(bodies.note, 101).enqueue().result(90) == 101
    assert sorted(int(n) for n in programs.ran()) == [0, 1, 2, 3, 101]
    assert outcomes(pg_url) == {"succeeded": 5}
    assert len(caplog.records) < 40, caplog.text
    check_invariants(pg_url)


def test_notifications_are_received_again_once_the_network_is_back(
    app: Windlass, proxy: TcpProxy, pg_url: str, programs: Programs, monkeypatch: pytest.MonkeyPatch
):
    """J3.6, J7.8: a listening connection that would receive nothing for ever is detected and replaced."""
    monkeypatch.setattr(listener, "PROBE_EVERY", 0.5)
    seldom = Settings(poller=PollerSettings(min_delay=600, max_delay=600, deep_idle_delay=600))
    listening, elsewhere = make_app(proxy.unpooled_url, settings=seldom), make_app(pg_url)
    with listening.worker():
        assert elsewhere.bind(bodies.note, 0).enqueue().result(90) == 0
        proxy.stop_forwarding()
        until(lambda: listeners(pg_url) == 1, "the silent line to be given up; who waits for the result listens too")
        proxy.forward_again()
        until(lambda: listeners(pg_url) == 2, "the worker to listen again")
        assert elsewhere.bind(bodies.note, 1).enqueue().result(90) == 1
    for application in (listening, elsewhere):
        application.close()
    assert programs.ran() == ["0", "1"]
    del app


def listeners(url: str) -> int:
    """Sessions whose last statement was LISTEN, or a look whether they still do."""
    question = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND (query LIKE 'LISTEN%' OR query = 'SELECT 1')"""
    return int(one(url, question))


def test_a_slow_network_costs_time_and_nothing_else(
    app: Windlass, proxy: TcpProxy, pg_url: str, programs: Programs, caplog: pytest.LogCaptureFixture
):
    """J7.2, J7.8: a tenth of a second for every message: no error, no lost node, every job once."""
    handles = app.enqueue_many([app.bind(bodies.note, n) for n in range(JOBS)])
    proxy.delay = 0.05
    with app.worker(concurrency=10):
        assert [handle.join(90) for handle in handles] == [JobStatus.SUCCEEDED] * JOBS
    assert sorted(int(n) for n in programs.ran()) == list(range(JOBS))
    assert ran(pg_url) == {"succeeded": JOBS}
    assert [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []


def test_a_worker_that_hangs_inside_a_transaction_does_not_keep_its_jobs(pg_url: str, programs: Programs):
    """P9.C5b, J7.3: its locks go with its transaction, which the server ends; its late commit is refused."""
    impatient = f"{pg_url}?options={quote('-c idle_in_transaction_session_timeout=1s')}"
    app = make_app(pg_url)
    app.migrate()
    handle = app.bind(bodies.pay, 7).using(on_success=bodies.follow).enqueue()
    stop_there = {**SHORT_LEASES, "WINDLASS_FAILPOINTS": "completer.before_commit=stop@1"}
    first = programs.worker(impatient, environ=stop_there)
    until(lambda: "failpoint completer.before_commit: stop" in first.printed, "the first worker to stand still")
    second = programs.worker(impatient)
    assert handle.result(90) == 7
    until(lambda: statuses(pg_url) == {"SUCCEEDED": 2}, "the callback to run")
    stood = app.get(handle.id)
    assert stood.node == second.node
    first.resume()
    first.says("came too late and was refused")
    assert app.get(handle.id) == stood
    assert [attempt.outcome for attempt in app.history(handle.id)] == ["lost", "succeeded"]
    assert (programs.ran("fence-7"), programs.ran("followed")) == (["1", "3"], ["7"])
    app.close()
    for worker in (first, second):
        worker.terminate()
        assert worker.exit_code() == 0
    check_invariants(pg_url)


def test_the_limit_of_a_call_does_not_end_calls_that_are_answered(
    app: Windlass, pg_url: str, monkeypatch: pytest.MonkeyPatch
):
    """J7.8: connections that are used for longer than any call may take, one call after the other, are left alone."""
    stored = 0
    for module in (wire, thread_wire):
        monkeypatch.setattr(module, "monotonic", lambda: stored * TIMEOUT / 2)
    for number in range(10):
        app.bind(bodies.note, number).enqueue()
        stored += 1
    assert statuses(pg_url) == {"PENDING": stored}


def test_the_server_gets_our_timeouts_unless_the_url_sets_them(pg_url: str):
    """J7.3: a machine that is gone in the middle of a transaction would keep its locks for hours by default."""
    chosen = f"{pg_url}?options={quote('-c idle_in_transaction_session_timeout=3s')}"
    limits = []
    for url in (pg_url, chosen):
        with psycopg.connect(conninfo(url, pooled=False)) as server:
            names = ("idle_in_transaction_session_timeout", "tcp_user_timeout", "plan_cache_mode", "enable_seqscan")
            limits.append([server.execute(f"SHOW {name}".encode()).fetchone() for name in names])
    rest = [("15000",), ("force_generic_plan",), ("off",)]
    assert limits == [[("10s",), *rest], [("3s",), *rest]]
    assert "options" not in psycopg.conninfo.conninfo_to_dict(conninfo(pg_url, pooled=True))
