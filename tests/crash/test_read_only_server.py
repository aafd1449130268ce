"""PostgreSQL turns read-only (a failover, a full disk, an administrator) or ends a transaction by itself."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import end_other_sessions, one, outcomes, rows
from tests.support.invariants import check_invariants
from tests.support.programs import Programs
from tests.support.waiting import until
from windlass import JobStatus, NodeSettings, Settings, StoreUnavailableError, Windlass
from windlass.domain.clock import SystemClock
from windlass.stores.dialect import Dialect
from windlass.stores.open import open_database
from windlass.stores.plan import Plan, Step

BUSY_HEART = Settings(node=NodeSettings(heartbeat_interval=0.2, missed_heartbeats=100))


@pytest.fixture
def app(pg_url: str, programs: Programs) -> Iterator[Windlass]:
    del programs  # its environment is where bodies write
    application = make_app(pg_url, settings=BUSY_HEART)
    application.migrate()
    yield application
    application.close()


def turn(url: str, read_only: str) -> None:
    """From the next session on; those there are have what they began with."""
    with psycopg.connect(url, autocommit=True, options="-c default_transaction_read_only=off") as administrator:
        change = f'ALTER DATABASE "{administrator.info.dbname}" SET default_transaction_read_only = {read_only}'
        administrator.execute(change.encode())


def refusal(app: Windlass) -> str:
    with pytest.raises(StoreUnavailableError) as refused:
        app.bind(bodies.note, 2).enqueue()
    return str(refused.value)


def test_a_read_only_server_is_unavailable_until_it_accepts_writes_again(
    app: Windlass, pg_url: str, programs: Programs, caplog: pytest.LogCaptureFixture
):
    """J7.8: no session that may only read is kept; outcomes are written, and new jobs run, once others may write."""
    with app.worker() as worker:
        held = app.bind(bodies.hold, 1).enqueue()
        until(lambda: programs.ran("began") == ["1"], "the body to begin")
        node = worker.node
        assert node is not None
        name = node.id
        turn(pg_url, "on")
        with psycopg.connect(pg_url, autocommit=True) as administrator:
            end_other_sessions(administrator)
        until(lambda: "read-only transaction" in refusal(app), "a write to be refused on a session that may read")
        assert "read-only transaction" in refusal(app)
        assert held.status() is JobStatus.RUNNING, "who only asks is answered"
        programs.open_gate()
        until(lambda: "completer failed" in caplog.text, "the outcome to be refused")
        until(lambda: "heartbeat failed" in caplog.text, "a beat to be refused")
        turn(pg_url, "off")
        assert app.bind(bodies.note, 3).enqueue().result(90) == 3
        assert held.result(90) == 1
        assert node.id == name, "it was never lost"
    assert programs.ran() == ["1", "3"]
    assert outcomes(pg_url) == {"succeeded": 2}
    check_invariants(pg_url)


OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def test_a_session_that_refused_a_write_is_not_kept(app: Windlass, pg_url: str):
    """J7.8: neither on a thread nor on a loop: the next caller gets a new one, perhaps to another server."""
    app.close()
    database = open_database(f"{pg_url}?options=-c%20default_transaction_read_only%3Don", SystemClock())

    async def on_a_loop() -> None:
        with pytest.raises(StoreUnavailableError, match="read-only transaction"):
            await database.arun(dawdling, "refused", lambda: None)
        await asyncio.to_thread(until, lambda: one(pg_url, OTHERS) == 0, "the loop's sessions to end")
        await database.aclose_loop()

    with pytest.raises(StoreUnavailableError, match="read-only transaction"):
        database.run(dawdling, "refused", lambda: None)
    until(lambda: one(pg_url, OTHERS) == 0, "the thread's sessions to end")
    asyncio.run(on_a_loop())
    database.close()


# ---------------------------------------------------------------------- transactions that the server ends


def dawdling(dialect: Dialect, queue: str, pause: Callable[[], object]) -> Plan[None]:
    """A process that stands still in the middle of a transaction."""
    del dialect
    yield Step("insert_queue", {"name": queue})
    pause()
    yield Step("list_queues")


LIMITS = {"idle_in_transaction_session_timeout": 130_000, "transaction_timeout": 170_000}
"""What ends a transaction, and since which version of the server."""


@pytest.mark.parametrize("limit", LIMITS)
def test_a_transaction_that_the_server_ended_never_was_and_its_connection_is_not_used_again(
    app: Windlass, pg_url: str, limit: str
):
    """J7.8: 25P03 and 25P04 mean that the store was away; on threads and on loops the next plan finds it again."""
    if int(one(pg_url, "SELECT current_setting('server_version_num')")) < LIMITS[limit]:
        pytest.skip(f"this server knows no {limit}")
    pause = threading.Event()
    database = open_database(f"{pg_url}?options=-c%20{limit}%3D100", SystemClock())

    async def on_a_loop() -> None:
        with pytest.raises(StoreUnavailableError, match="timeout"):
            await database.arun(dawdling, "lost", lambda: pause.wait(0.3))
        await database.arun(dawdling, "from-a-loop", lambda: None)
        await database.aclose_loop()

    with pytest.raises(StoreUnavailableError, match="timeout"):
        database.run(dawdling, "lost", lambda: pause.wait(0.3))
    database.run(dawdling, "from-a-thread", lambda: None)
    asyncio.run(on_a_loop())
    database.close()
    assert [name for (name,) in rows(pg_url, "SELECT name FROM windlass_queue ORDER BY name")] == [
        "from-a-loop",
        "from-a-thread",
    ]
