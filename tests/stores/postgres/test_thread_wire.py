"""The wire of threads: what it gives, what it does when there is no answer, and that it never suspends."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.support.tcp_proxy import TcpProxy
from windlass.stores.postgres.connections import SyncConnections
from windlass.stores.postgres.statements import Statement
from windlass.stores.postgres.thread_wire import ThreadWire
from windlass.stores.postgres.url import conninfo
from windlass.stores.postgres.wire import completed

ECHO = Statement(b"SELECT $1::text", ("value",), "row")
PID = Statement(b"SELECT pg_backend_pid()", (), "row")
SLEEP = Statement(b"SELECT pg_sleep(60)", (), "rows")
COPY = b"COPY t (n) FROM STDIN"


@contextmanager
def pool_of(url: str, *, pooled: bool = False) -> Iterator[SyncConnections]:
    pool = SyncConnections(conninfo(url, pooled=pooled), "PostgreSQL", pooled=pooled)
    yield pool
    pool.close()


@pytest.fixture
def proxy(pg_url: str) -> Iterator[TcpProxy]:
    with TcpProxy(pg_url) as running:
        yield running


@pytest.fixture
def wire(pg_url: str) -> Iterator[ThreadWire]:
    with pool_of(pg_url) as pool:
        taken = completed(pool.acquire())
        yield taken
        pool.release(taken)


@pytest.mark.parametrize("pooled", [False, True])
def test_every_kind_of_value_is_returned_at_every_use(pg_url: str, pooled: bool):
    """Design §4: the first use is plain, the second prepares, those after it use what was prepared."""
    statement = Statement(b"SELECT $1::text, $2::bigint, $3::float8", ("a", "b", "c"), "rows")
    values = [("ünïcödé \U0001f600", -(2**63), 0.1), ("", 0, 1e300), (None, None, None), ("tab\t\\ \"'", 7, -0.5)]
    with pool_of(pg_url, pooled=pooled) as pool:
        taken = completed(pool.acquire())
        for row in values * 2:
            assert completed(taken.execute(statement, dict(zip("abc", row, strict=True)))) == [row]
        pool.release(taken)


def test_texts_larger_than_every_buffer_pass_in_both_directions(wire: ThreadWire):
    """J1.1: what does not fit into the socket is sent when there is room, while answers are read."""
    large = "xü" * 10_000_000
    for _ in range(2):
        assert completed(wire.execute(ECHO, {"value": large})) == (large,)
    assert wire.reusable


def test_a_copy_larger_than_every_buffer_is_stored_in_its_transaction(wire: ThreadWire):
    """J1.1: part by part, as the server takes it."""
    completed(wire.script("CREATE TABLE t (n int); CREATE TABLE u (n int)"))
    parts = ["".join(f"{n}\n" for n in range(start, start + 10_000)) for start in range(0, 1_000_000, 10_000)]
    wire.begin()
    assert completed(wire.copy(COPY, parts)) == 1_000_000
    completed(wire.commit())
    assert completed(wire.execute(Statement(b"SELECT count(*), max(n) FROM t", (), "row"), {})) == (1_000_000, 999_999)
    assert wire.reusable


@pytest.mark.parametrize("text", [COPY.replace(b"t (n)", b"nowhere (n)"), COPY])
def test_a_refused_copy_raises_the_reason(pg_url: str, text: bytes):
    """J1.1: at its beginning, or when a line is not what the table takes; the connection goes on only if it can."""
    with pool_of(pg_url) as pool:
        taken = completed(pool.acquire())
        completed(taken.script("CREATE TABLE t (n int)"))
        with pytest.raises(psycopg.Error, match=r"does not exist|invalid input syntax"):
            completed(taken.copy(text, ["1\n", "no number\n"]))
        pool.release(taken)
        again = completed(pool.acquire())
        assert completed(again.execute(ECHO, {"value": "x"})) == ("x",)
        pool.release(again)


def test_a_failed_copy_stores_nothing_and_closes_its_connection(pg_url: str):
    """J1.1: the server waits for more lines then, and would take the next statement for one."""

    def lines() -> Iterator[str]:
        yield "1\n"
        raise LookupError("no more")

    with pool_of(pg_url) as pool:
        taken = completed(pool.acquire())
        completed(taken.script("CREATE TABLE t (n int)"))
        pid = completed(taken.execute(PID, {}))
        with pytest.raises(LookupError, match="no more"):
            completed(taken.copy(COPY, lines()))
        pool.release(taken)
        again = completed(pool.acquire())
        assert completed(again.execute(PID, {})) != pid
        assert completed(again.execute(Statement(b"SELECT count(*) FROM t", (), "row"), {})) == (0,)
        pool.release(again)


def test_a_statement_without_an_answer_in_time_fails_and_closes_its_connection(pg_url: str):
    """J7.8: no caller waits for ever."""
    with pool_of(pg_url) as pool:
        taken = completed(pool.acquire())
        taken.set_timeout(0.05)
        with pytest.raises(TimeoutError, match="no answer in time"):
            completed(taken.execute(SLEEP, {}))
        assert not taken.reusable
        pool.release(taken)
        assert taken.connection.closed


def test_a_connection_that_becomes_silent_during_a_large_write_fails(proxy: TcpProxy):
    """J7.8: also when it is the other side that reads no more."""
    with pool_of(proxy.unpooled_url) as pool:
        taken = completed(pool.acquire())
        completed(taken.script("CREATE TABLE t (n int)"))
        proxy.stop_forwarding()
        taken.set_timeout(0.5)
        with pytest.raises(TimeoutError, match="no answer in time"):
            completed(taken.copy(COPY, ["1\n" * 10_000_000] * 10))
        pool.release(taken)
        assert taken.connection.closed
        proxy.forward_again()


def test_a_coroutine_that_waits_for_a_loop_cannot_be_run_by_a_thread():
    with pytest.raises(AssertionError, match="event loop"):
        completed(asyncio.sleep(0))
