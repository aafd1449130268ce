"""Crash matrix, C8: the connection breaks while COMMIT is under way; what was committed is found out by looking."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import one, outcomes, ran, rows, statuses
from tests.support.invariants import check_invariants
from tests.support.programs import Programs
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import until
from windlass import Backoff, JobsSettings, JobStatus, NodeSettings, Settings, StoreUnavailableError, Windlass

JOBS = 30
QUICK = Settings(
    node=NodeSettings(heartbeat_interval=0.5, missed_heartbeats=3, recovery_interval=0.2),
    jobs=JobsSettings(commit="each"),
)
COMMIT = b"COMMIT"
CUTS = pytest.mark.parametrize("arrives", [True, False], ids=["committed", "never arrived"])


@pytest.fixture
def app(proxy: TcpProxy, programs: Programs) -> Iterator[Windlass]:
    """An application whose every connection goes through the proxy."""
    del programs  # its environment is where bodies write
    application = make_app(proxy.url, settings=QUICK)
    application.migrate()
    yield application
    application.close()


def cut(proxy: TcpProxy, mark: bytes, times: int, *, arrives: bool) -> None:
    """Cut the commits of transactions that contain a mark."""
    (proxy.cut_after if arrives else proxy.cut_before)(mark, times, final=COMMIT)


@CUTS
def test_an_outcome_with_a_callback_is_written_once(
    app: Windlass,
    proxy: TcpProxy,
    pg_url: str,
    programs: Programs,
    arrives: bool,
    caplog: pytest.LogCaptureFixture,
):
    """P9.C8, J4.3, J5.5: outcome and callback were committed together or not at all, and are not written again."""
    calls = [app.bind(bodies.pay, n).using(on_success=bodies.follow) for n in range(JOBS)]
    app.enqueue_many(calls)
    cut(proxy, b"INSERT INTO windlass_done", 3, arrives=arrives)
    with app.worker(concurrency=5):
        until(lambda: statuses(pg_url) == {"SUCCEEDED": 2 * JOBS}, "all jobs and their callbacks to succeed")
    assert proxy.cuts == 3
    assert sorted(int(n) for n in programs.ran()) == list(range(JOBS))
    assert Counter(programs.ran("followed")) == Counter(str(n) for n in range(JOBS))
    assert ran(pg_url) == {"succeeded": 2 * JOBS}
    assert "came too late" not in caplog.text, "its own outcome was taken for somebody else's"
    check_invariants(pg_url)


@CUTS
def test_a_retry_is_counted_once(app: Windlass, proxy: TcpProxy, pg_url: str, programs: Programs, arrives: bool):
    """P9.C8, P9.C3, J2.5: one attempt spent, one due time set, whatever the client knows of it."""
    call = app.bind(bodies.fail_until, 0, 3).using(max_retries=2, backoff=Backoff.fixed(0.1))
    handle = call.enqueue()
    cut(proxy, b"UPDATE windlass_hot h SET status = 'PENDING'", 2, arrives=arrives)
    with app.worker():
        assert handle.result(90) == 0
    assert proxy.cuts == 2
    assert programs.ran("attempt-0") == ["1", "2", "3"]
    assert outcomes(pg_url) == {"retried": 2, "succeeded": 1}
    check_invariants(pg_url)


@CUTS
def test_jobs_of_a_lost_node_are_requeued_once(
    app: Windlass, proxy: TcpProxy, pg_url: str, programs: Programs, arrives: bool
):
    """P9.C8, P9.C10, J7.4: one crash is charged, although the recovery does not know whether it has happened."""
    victim = programs.worker(pg_url)
    assert victim.node
    handles = [app.bind(bodies.hold, n).enqueue() for n in range(3)]
    until(lambda: len(programs.ran("began")) == 3, "the bodies to begin")
    victim.kill()
    programs.open_gate()
    cut(proxy, b"'lost'", 1, arrives=arrives)
    with app.worker():
        assert [handle.result(90) for handle in handles] == [0, 1, 2]
    assert proxy.cuts == 1
    assert rows(pg_url, "SELECT DISTINCT attempts, crash_count, fence FROM windlass_done") == [(1, 1, 3)]
    check_invariants(pg_url)


def refused(call: Any) -> None:
    with pytest.raises(StoreUnavailableError, match="does not answer"):
        call()


@CUTS
def test_an_enqueue_without_an_answer_is_stored_whole_or_not_at_all(
    app: Windlass, proxy: TcpProxy, pg_url: str, arrives: bool
):
    """P9.C8, P9.C0: the caller gets an error; with a key it may repeat the call, without one it must check."""
    app.bind(bodies.note, 0).enqueue()
    keyed = app.bind(bodies.note, 1).using(idempotency_key="order-1", tags=["order"])
    cut(proxy, b"INSERT INTO windlass_key", 1, arrives=arrives)
    refused(keyed.enqueue)
    assert one(pg_url, "SELECT count(*) FROM windlass_key") == arrives
    again = keyed.enqueue()
    assert again.duplicate is arrives
    plain = [app.bind(bodies.note, n) for n in range(2, 300)]
    cut(proxy, b"COPY windlass_hot", 1, arrives=arrives)
    refused(lambda: app.enqueue_many(plain))
    assert statuses(pg_url) == {"PENDING": 2 + arrives * len(plain)}
    check_invariants(pg_url)


@CUTS
def test_a_cancel_without_an_answer_can_be_repeated(app: Windlass, proxy: TcpProxy, pg_url: str, arrives: bool):
    """P9.C8, J2.2: the job ends once; the repeat says whether it was the one to end it."""
    handle = app.bind(bodies.note, 0).using(business_key="order").enqueue()
    cut(proxy, b"'CANCELED'", 1, arrives=arrives)
    refused(handle.cancel)
    assert handle.cancel() is not arrives
    assert handle.status() is JobStatus.CANCELED
    assert one(pg_url, "SELECT count(*) FROM windlass_live_key") == 0
    check_invariants(pg_url)
