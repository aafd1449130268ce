"""The connection to PostgreSQL is cut between a commit and its answer: the client cannot know whether it happened."""

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import ran, rows, statuses
from tests.support.programs import Programs
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import until
from windlass import JobCompleted, JobStatus, StoreUnavailableError, Windlass

JOBS = 60


@pytest.fixture
def app(proxy: TcpProxy, programs: Programs) -> Iterator[Windlass]:
    """An application whose every connection goes through the proxy."""
    del programs  # its environment is where bodies write
    application = make_app(proxy.url)
    application.migrate()
    yield application
    application.close()


def enqueue(app: Windlass, body, count: int = JOBS) -> list:
    return app.enqueue_many([app.bind(body, n) for n in range(count)])


def each_ran_once(programs: Programs, url: str, count: int = JOBS) -> None:
    assert sorted(int(n) for n in programs.ran()) == list(range(count))
    assert statuses(url) == {"SUCCEEDED": count}
    assert ran(url) == {"succeeded": count}
    assert rows(url, "SELECT DISTINCT attempts, crash_count FROM windlass_done") == [(1, 0)]


def test_a_completion_whose_commit_was_cut_off_is_neither_lost_nor_applied_twice(
    app: Windlass, proxy: TcpProxy, pg_url: str, programs: Programs, caplog: pytest.LogCaptureFixture
):
    """P9.C8, J4.3, J2.1: the flush is repeated, finds itself in the history, and its events are published once."""
    events: Counter[UUID] = Counter()
    app.on(JobCompleted)(lambda event: events.update([event.job_id]))
    handles = enqueue(app, bodies.note)
    proxy.cut_after(b"INSERT INTO windlass_done", times=3)
    with app.worker(concurrency=10):
        assert [handle.result(90) for handle in handles] == list(range(JOBS))
    assert proxy.cuts == 3
    each_ran_once(programs, pg_url)
    assert events == Counter(handle.id for handle in handles)
    assert "came too late" not in caplog.text


def test_jobs_whose_claim_was_cut_off_are_not_forgotten_by_their_node(
    app: Windlass, proxy: TcpProxy, pg_url: str, programs: Programs
):
    """P9.C8, J7.8, J3.2: claimed for a node that never got the answer, and lives: it takes them all the same."""
    handles = enqueue(app, bodies.note)
    proxy.cut_after(b"FOR UPDATE SKIP LOCKED", times=3)
    with app.worker(concurrency=10):
        assert [handle.result(90) for handle in handles] == list(range(JOBS))
    assert proxy.cuts == 3
    each_ran_once(programs, pg_url)


def test_an_enqueue_that_was_cut_off_can_be_repeated_with_its_key(
    app: Windlass, proxy: TcpProxy, pg_url: str, programs: Programs
):
    """P9.C8, J1.4: the caller gets an error; the same key gives the job that was stored."""
    call = app.bind(bodies.note, 7).using(idempotency_key="order-7")
    app.bind(bodies.note, 6).enqueue()  # whatever is asked at first use has now been asked
    proxy.cut_after(b"COMMIT")
    with pytest.raises(StoreUnavailableError, match=r"PostgreSQL 127.0.0.1:\d+/\S+ does not answer"):
        call.enqueue()
    again = call.enqueue()
    assert again.duplicate
    with app.worker():
        assert again.result(90) == 7
    assert statuses(pg_url) == {"SUCCEEDED": 2}
    assert programs.ran() == ["6", "7"]


def test_a_worker_whose_every_wire_is_cut_again_and_again_finishes_everything(
    app: Windlass, proxy: TcpProxy, pg_url: str, programs: Programs
):
    """J7.8: connections are made anew, nothing waits for a person."""
    handles = enqueue(app, bodies.note_in_thread, 400)
    with app.worker(concurrency=10):
        for mark in (b"windlass_hot", b"windlass_node", b"windlass_job", b"windlass_done", b"windlass_attempt"):
            proxy.cut_all()
            proxy.cut_after(mark)
            until(proxy.has_cut, f"a wire to be cut at {mark!r}")
        assert [handle.join(90) for handle in handles] == [JobStatus.SUCCEEDED] * 400
    each_ran_once(programs, pg_url, 400)
