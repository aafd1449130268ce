"""PostgreSQL is restarted, ends sessions, or has no connection to give, while jobs come and go."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import end_other_sessions, outcomes, rows, statuses
from tests.support.invariants import check_invariants
from tests.support.programs import Program, Programs
from tests.support.waiting import until
from windlass import StoreUnavailableError, Windlass
from windlass.testing.embedded_postgres import EmbeddedPostgres

# One server, which these tests stop and start, and so one test process for all of them.
pytestmark = pytest.mark.xdist_group("postgres_outage")

MOST_LINES = 60
"""What a worker may log about one trouble, however often it meets it."""


@pytest.fixture
def app(outage_app: Windlass) -> Windlass:
    return outage_app


class Caller:
    """Enqueues without end, each job until it is acknowledged: a repeat has the same key."""

    def __init__(self, app: Windlass) -> None:
        self._app = app
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._enqueue)
        self.acknowledged = 0
        self.refused = 0

    def _enqueue(self) -> None:
        while not self._over.is_set():
            call = self._app.bind(bodies.note, self.acknowledged).using(idempotency_key=f"job-{self.acknowledged}")
            try:
                call.enqueue()
            except StoreUnavailableError:
                self.refused += 1
                self._over.wait(0.05)
            else:
                self.acknowledged += 1

    @contextmanager
    def calling(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()


def has_run(programs: Programs, count: int) -> bool:
    return len(programs.ran()) >= count


def each_ran_once(url: str, programs: Programs, count: int) -> None:
    """Workers that live lose nothing and repeat nothing, whatever the database does."""
    until(lambda: statuses(url) == {"SUCCEEDED": count}, "all acknowledged jobs to succeed")
    assert sorted(int(n) for n in programs.ran()) == list(range(count))
    assert outcomes(url).pop("succeeded") == count
    assert rows(url, "SELECT DISTINCT attempts, crash_count FROM windlass_done") == [(1, 0)]
    check_invariants(url)


def left_without_a_flood(*workers: Program) -> None:
    for worker in workers:
        worker.terminate()
    assert [worker.exit_code() for worker in workers] == [0] * len(workers)
    for worker in workers:
        records = [line for line in worker.printed.splitlines() if line.startswith(("INFO", "WARNING", "ERROR"))]
        assert len(records) < MOST_LINES, "\n".join(records)  # an error of libpq has several lines
        assert "Traceback" not in worker.printed


@pytest.mark.parametrize("immediately", [False, True], ids=["shut down", "crashed"])
def test_restarts_in_the_middle_of_work_lose_and_repeat_nothing(
    app: Windlass, server: EmbeddedPostgres, url: str, programs: Programs, immediately: bool
):
    """J7.8, J4.3, J1.4: three restarts while jobs are enqueued and run; every acknowledged job runs, once."""
    workers = [programs.worker(url, 20, environ={}) for _ in range(2)]
    assert all(worker.node for worker in workers)
    caller = Caller(app)
    with caller.calling():
        for _ in range(3):
            until(partial(has_run, programs, len(programs.ran()) + 100), "the work to go on")
            server.restart(immediately=immediately)
        until(partial(has_run, programs, len(programs.ran()) + 100), "the work to go on")
    each_ran_once(url, programs, caller.acknowledged)
    left_without_a_flood(*workers)  # whether one of them needed the store while it was away is a matter of chance


def test_sessions_that_are_ended_all_the_time_lose_and_repeat_nothing(app: Windlass, url: str, programs: Programs):
    """J7.8, J4.3: `pg_terminate_backend` for all sessions, twenty times a second, while jobs are enqueued and run."""
    workers = [programs.worker(url, 20, environ={}) for _ in range(2)]
    assert all(worker.node for worker in workers)
    caller, killed, pause = Caller(app), 0, threading.Event()
    with caller.calling(), psycopg.connect(url, autocommit=True) as administrator:
        for _ in range(60):
            pause.wait(0.05)
            killed += end_other_sessions(administrator)
        until(partial(has_run, programs, len(programs.ran()) + 20), "the work to go on")
    assert killed > 60
    each_ran_once(url, programs, caller.acknowledged)
    left_without_a_flood(*workers)


@pytest.fixture
def shop_url(url: str) -> Iterator[str]:
    """The same database for an ordinary user: superusers have reserved connections."""
    with psycopg.connect(url, autocommit=True) as administrator:
        administrator.execute("CREATE ROLE shop LOGIN")
        administrator.execute("GRANT CREATE, USAGE ON SCHEMA public TO shop")
    parts = urlsplit(url)
    yield urlunsplit(parts._replace(netloc=f"shop@{parts.hostname}:{parts.port}"))
    with psycopg.connect(url, autocommit=True) as administrator:
        end_other_sessions(administrator)
        administrator.execute("DROP OWNED BY shop")
        administrator.execute("DROP ROLE shop")


def refusal(app: Windlass) -> str:
    """Why nothing can be enqueued. At first perhaps because a connection was just ended."""
    with pytest.raises(StoreUnavailableError) as refused:
        app.bind(bodies.note, 100).enqueue()
    return str(refused.value)


def test_a_server_without_a_free_connection_is_waited_for(url: str, shop_url: str, programs: Programs):
    """J7.8: callers get the reason; a worker that lost its connections continues once it may connect again."""
    app = make_app(shop_url)
    app.migrate()
    worker = programs.worker(shop_url, environ={})
    assert worker.node
    handles = [app.bind(bodies.hold, n).enqueue() for n in range(3)]
    until(lambda: len(programs.ran("began")) == 3, "the bodies to begin")
    with psycopg.connect(url, autocommit=True) as administrator:
        administrator.execute("ALTER ROLE shop CONNECTION LIMIT 0")
        end_other_sessions(administrator)
        programs.open_gate()
        until(lambda: "does not answer: " in (why := refusal(app)) and "too many connections for role" in why, "a no")
        worker.says(r"failed, trying again .*too many connections for role")
        until(lambda: len(programs.ran()) == 3, "the bodies to end without a database")
        late = programs.worker(shop_url, environ={})
        late.says("the store is not reachable, waiting .*too many connections")
        administrator.execute("ALTER ROLE shop CONNECTION LIMIT -1")
    assert late.node
    assert [handle.result(90) for handle in handles] == [0, 1, 2]
    assert app.bind(bodies.note, 3).enqueue().result(90) == 3
    app.close()
    each_ran_once(url, programs, 4)
    left_without_a_flood(worker)
