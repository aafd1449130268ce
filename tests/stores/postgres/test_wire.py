"""The way to PostgreSQL from a loop: right answers, errors as the driver has them, and no connection in disorder."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
import uvloop

from tests.stores.databases import migrate_at
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import until
from windlass.domain.clock import SystemClock
from windlass.errors import StoreUnavailableError
from windlass.stores.database import StoreDataError
from windlass.stores.dialect import Dialect
from windlass.stores.open import open_database
from windlass.stores.plan import Plan, RestartPlanError, Step
from windlass.stores.postgres import connections as connection_pools
from windlass.stores.postgres.connections import MOST_CONNECTIONS, AsyncConnections
from windlass.stores.postgres.statements import Statement
from windlass.stores.postgres.url import conninfo
from windlass.stores.postgres.wire import MOST_PREPARED, Wire

SLEEP = Statement(b"SELECT pg_sleep(60)", (), "rows")
ECHO = Statement(b"SELECT $1::text", ("value",), "row")
PID = Statement(b"SELECT pg_backend_pid()", (), "row")
PREPARED = Statement(b"SELECT count(*) FROM pg_prepared_statements WHERE $1::int = 1", ("one",), "row")


@asynccontextmanager
async def connections(url: str, *, pooled: bool = False, timeout: float = 30.0) -> AsyncIterator[AsyncConnections]:
    url = url.removesuffix("?pooled=true")
    pool = AsyncConnections(conninfo(url, pooled=pooled), "PostgreSQL", pooled=pooled, timeout=timeout)
    try:
        yield pool
    finally:
        pool.close()


@asynccontextmanager
async def wired(url: str, *, pooled: bool = False) -> AsyncIterator[Wire]:
    async with connections(url, pooled=pooled) as pool:
        wire = await pool.acquire()
        try:
            yield wire
        finally:
            pool.release(wire)


def sleeping(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND state = 'active' "
            "AND datname = current_database()"
        ).fetchone()
    return found[0] if found else 0


def kill_others(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )


async def is_asleep(url: str) -> None:
    await asyncio.to_thread(until, lambda: sleeping(url) == 1, "the server to work on the statement")


async def fall_asleep(wire: Wire, url: str, within: str) -> asyncio.Task[Any]:
    """Have the server work on a statement: alone, along with the begin of a transaction, or later in one."""
    if within != "nothing":
        wire.begin()
    if within == "transaction":
        await wire.execute(ECHO, {"value": "inside"})
    task = asyncio.create_task(wire.execute(SLEEP, {}))
    await is_asleep(url)
    return task


# ---------------------------------------------------------------------- answers


@pytest.mark.parametrize("pooled", [False, True])
async def test_every_kind_of_value_is_returned_at_the_first_and_at_every_later_use(pg_url: str, pooled: bool):
    """Design §4: the first use is plain, the second prepares, those after it use what was prepared."""
    statement = Statement(b"SELECT $1::text, $2::bigint, $3::float8, $1::text IS NULL", ("a", "b", "c"), "rows")
    values = [("ünïcödé \U0001f600", -(2**63), 0.1), ("", 0, 1e300), (None, None, None), ("tab\t\\ \"'", 7, -0.5)]
    async with wired(pg_url, pooled=pooled) as wire:
        for a, b, c in values * 2:
            assert await wire.execute(statement, {"a": a, "b": b, "c": c}) == [(a, b, c, a is None)]


async def test_results_have_the_kind_of_the_statement(pg_url: str):
    """Design §3: rows, a row, no row, a count."""
    async with wired(pg_url) as wire:
        three = b"SELECT n FROM generate_series(1, 3) n WHERE n > $1::int"
        assert await wire.execute(Statement(three, ("n",), "rows"), {"n": 1}) == [(2,), (3,)]
        assert await wire.execute(Statement(three, ("n",), "row"), {"n": 1}) == (2,)
        assert await wire.execute(Statement(three, ("n",), "row"), {"n": 9}) is None
        assert await wire.execute(Statement(three, ("n",), "count"), {"n": 1}) == 2
        await wire.execute(Statement(b"CREATE TABLE t (n int)", (), "count"), {})
        insert = Statement(b"INSERT INTO t SELECT generate_series(1, $1::int)", ("n",), "count")
        assert [await wire.execute(insert, {"n": n}) for n in range(4)] == [0, 1, 2, 3]


async def test_texts_larger_than_every_buffer_pass_in_both_directions(pg_url: str):
    """J1.1: what does not fit into the socket is sent when there is room, while answers are read."""
    large = "xü" * 10_000_000
    async with wired(pg_url) as wire:
        for _ in range(3):
            (echo,) = await wire.execute(ECHO, {"value": large})
            assert echo == large
        many = Statement(b"SELECT n, repeat('y', 100) FROM generate_series(1, $1::int) n", ("n",), "rows")
        rows = await wire.execute(many, {"n": 100_000})
        assert rows[-1] == (100_000, "y" * 100)
        assert wire.reusable


async def test_nothing_is_prepared_behind_a_pooler_and_no_more_than_enough_elsewhere(pg_url: str):
    """J7.8: a pooler hands sessions around; and what is prepared takes memory on the server."""
    async with wired(pg_url, pooled=True) as wire:
        assert [await wire.execute(PREPARED, {"one": 1}) for _ in range(4)] == [(0,)] * 4
    async with wired(pg_url) as wire:
        assert [await wire.execute(PREPARED, {"one": 1}) for _ in range(4)] == [(0,), (1,), (1,), (1,)]
        for number in range(2 * MOST_PREPARED):
            statement = Statement(b"SELECT %d" % number, (), "row")
            assert [await wire.execute(statement, {}) for _ in range(3)] == [(number,)] * 3
        assert await wire.execute(PREPARED, {"one": 1}) == (MOST_PREPARED,)


async def test_a_statement_that_is_sent_with_begin_is_prepared_too(pg_url: str):
    """Design §4: most plans begin with the same statement, and it is always sent along with the begin."""
    async with wired(pg_url) as wire:
        counts = []
        for _ in range(4):
            wire.begin()
            counts.append(await wire.execute(PREPARED, {"one": 1}))
            await wire.commit()
        assert counts == [(0,), (1,), (1,), (1,)]


async def test_a_session_with_another_encoding_gets_and_gives_the_same_texts(pg_url: str):
    """J1.1: whatever PGCLIENTENCODING says."""
    async with wired(f"{pg_url}?client_encoding=latin1") as wire:
        assert await wire.execute(ECHO, {"value": "äöü"}) == ("äöü",)
        with pytest.raises(UnicodeError):
            await wire.execute(ECHO, {"value": "€"})
        assert wire.reusable


# ---------------------------------------------------------------------- errors


ERRORS = [
    ("SELECT 1 / $1::int", psycopg.errors.DivisionByZero),
    ("SELECT $1::int FROM nowhere", psycopg.errors.UndefinedTable),
    ("INSERT INTO one_row SELECT 1 + $1::int", psycopg.errors.UniqueViolation),
    ("SELECT raises('40P01', $1::int)", psycopg.errors.DeadlockDetected),
    ("SELECT raises('40001', $1::int)", psycopg.errors.SerializationFailure),
    ("SELECT raises('57014', $1::int)", psycopg.errors.QueryCanceled),
    ("INSERT INTO late SELECT $1::int FROM generate_series(1, 2)", psycopg.errors.UniqueViolation),
]
"""The last one fails at its commit, when its own answer is on the way already."""
PREPARATION = """
    CREATE TABLE one_row (n int PRIMARY KEY); INSERT INTO one_row VALUES (1);
    CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED);
    CREATE FUNCTION raises(code text, n int) RETURNS int LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION USING ERRCODE = code, MESSAGE = 'as asked'; END $$
"""


async def committed(wire: Wire, statement: Statement) -> None:
    await wire.execute(statement, {"n": 0})
    await wire.commit()


@pytest.mark.parametrize(("text", "error"), ERRORS, ids=[error.__name__ + text[:6] for text, error in ERRORS])
@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "pooled"])
async def test_errors_are_those_of_the_driver_and_keep_the_connection_usable(
    pg_url: str, text: str, error: type[Exception], pooled: bool
):
    """J7.8: by their class is decided what is tried again, what is refused, and what means that the store is gone."""
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute(PREPARATION)
    async with wired(pg_url, pooled=pooled) as wire:
        for _ in range(3):
            with pytest.raises(error):
                await wire.execute(Statement(text.encode(), ("n",), "rows"), {"n": 0})
            assert wire.reusable
            wire.begin()
            with pytest.raises(error):
                await committed(wire, Statement(text.encode(), ("n",), "rows"))
            await wire.roll_back()
            assert wire.reusable
            assert await wire.execute(ECHO, {"value": "next"}) == ("next",)


@pytest.mark.parametrize("value", ["a\0b", "\0", '{"a\0"}'])
async def test_a_text_with_nul_is_refused_and_not_cut_off(pg_url: str, value: str):
    """J1.1: libpq would end the text there."""
    async with wired(pg_url) as wire:
        with pytest.raises(psycopg.DataError, match="NUL"):
            await wire.execute(ECHO, {"value": value})
        with pytest.raises(TypeError, match="a text, a number or None, got list"):
            await wire.execute(ECHO, {"value": []})
        assert await wire.execute(ECHO, {"value": "ab"}) == ("ab",)


# ---------------------------------------------------------------------- giving up


@pytest.mark.parametrize("within", ["nothing", "begin", "transaction"])
async def test_a_cancelled_wait_cancels_the_statement_and_discards_its_answer(pg_url: str, within: str):
    """J7.8: the next user of the connection must not get the answer of the one before."""
    async with wired(pg_url) as wire:
        pid = await wire.execute(PID, {})
        task = await fall_asleep(wire, pg_url, within)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sleeping(pg_url) == 0
        await wire.roll_back()
        assert wire.reusable
        assert await wire.execute(PID, {}) == pid


async def test_a_statement_without_an_answer_is_given_up_in_time_and_stopped(pg_url: str):
    """J7.8: no caller waits for ever."""
    async with connections(pg_url, timeout=0.3) as pool:
        wire = await pool.acquire()
        with pytest.raises(TimeoutError):
            await wire.execute(SLEEP, {})
        pool.release(wire)
        assert sleeping(pg_url) == 0
        wire = await pool.acquire()
        assert await wire.execute(ECHO, {"value": "again"}) == ("again",)
        pool.release(wire)


async def test_a_caller_waits_a_limited_time_for_a_busy_pool(pg_url: str):
    """J7.8: places are bounded, and so is the wait for one."""
    async with connections(pg_url, timeout=0.5) as pool:
        wires = [await pool.acquire() for _ in range(MOST_CONNECTIONS)]
        with pytest.raises(TimeoutError):
            await pool.acquire()
        waiting = asyncio.create_task(pool.acquire())
        await asyncio.sleep(0)
        pool.release(wires.pop())
        wires.append(await waiting)
        for wire in wires:
            pool.release(wire)


# ---------------------------------------------------------------------- lost connections


@pytest.mark.parametrize("within", ["nothing", "begin", "transaction"])
async def test_a_session_ended_by_the_server_is_an_operational_error_at_once(pg_url: str, within: str):
    """J7.8: in the middle of a statement, with a transaction on its way or open."""
    async with connections(pg_url) as pool:
        wire = await pool.acquire()
        task = await fall_asleep(wire, pg_url, within)
        kill_others(pg_url)
        with pytest.raises(psycopg.OperationalError):
            await asyncio.wait_for(task, 90)
        assert not wire.reusable
        pool.release(wire)
        another = await pool.acquire()
        assert another is not wire
        assert await another.execute(ECHO, {"value": "again"}) == ("again",)
        pool.release(another)


@pytest.mark.parametrize("begins", [False, True])
async def test_a_session_that_ended_between_two_statements_is_an_operational_error_too(pg_url: str, begins: bool):
    """J7.8: found out at the next statement, however it is sent."""
    async with connections(pg_url) as pool:
        wire = await pool.acquire()
        await wire.execute(ECHO, {"value": "before"})
        kill_others(pg_url)
        if begins:
            wire.begin()
        with pytest.raises(psycopg.OperationalError):
            await asyncio.wait_for(wire.execute(ECHO, {"value": "after"}), 90)
        pool.release(wire)
        idle = await pool.acquire()
        pool.release(idle)
        kill_others(pg_url)
        await asyncio.sleep(0.06)  # longer than a connection is believed without a look
        found = await pool.acquire()
        assert found is not idle
        assert await found.execute(ECHO, {"value": "sound"}) == ("sound",)
        pool.release(found)


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
NOTICE = b"SWARNING\0C57P02\0Mthe server goes down\0\0"


@pytest.mark.parametrize("loop", LOOPS)
def test_a_last_message_of_a_server_does_not_hide_that_the_connection_is_lost(pg_url: str, loop: str):
    """J7.8: a last message and the reset arrive together, as when a server is killed; some loops report that once."""

    async def ask(proxy: TcpProxy) -> None:
        async with wired(proxy.url, pooled=True) as wire:
            task = asyncio.create_task(wire.execute(SLEEP, {}))
            await is_asleep(pg_url)
            proxy.cut_all(b"N" + (len(NOTICE) + 4).to_bytes(4) + NOTICE)
            with pytest.raises(psycopg.OperationalError):
                await asyncio.wait_for(task, 90)

    with TcpProxy(pg_url) as proxy, asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(ask(proxy))
    kill_others(pg_url)


def sessions(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        ).fetchone()
    return found[0] - 1 if found else 0


def ask_the_time(dialect: Dialect) -> Plan[Any]:
    del dialect
    return (yield Step("store_now", alone=True))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("when", ["on the loop", "from another thread", "between two runs", "when the loop is over"])
def test_a_database_that_is_closed_keeps_no_session(pg_url: str, loop: str, when: str):
    """J7.6: from any thread, and whatever its loop does at that time."""
    database = open_database(pg_url, SystemClock())

    async def use() -> None:
        await asyncio.gather(database.arun(ask_the_time), database.arun(ask_the_time))
        await asyncio.to_thread(until, lambda: sessions(pg_url) == 2, "two sessions, and no earlier ones")
        if when == "on the loop":
            database.close()
        if when == "from another thread":
            await asyncio.to_thread(database.close)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(use())
        if when == "between two runs":
            database.close()
            runner.run(use())
    database.close()
    until(lambda: sessions(pg_url) == 0, "the sessions to end")


# ---------------------------------------------------------------------- plans


def names_after(dialect: Dialect, write: Callable[[], str], ending: Exception | None = None) -> Plan[list[Any]]:
    """Write a queue, read all of them, and fail then, if asked to."""
    del dialect
    yield Step("insert_queue", rows=[{"name": write()}])
    rows = yield Step("list_queues")
    if ending is not None:
        raise ending
    return [name for name, _ in rows]


async def test_plans_are_whole_or_not_there_at_all(pg_url: str, monkeypatch: pytest.MonkeyPatch):
    """J2.1, J7.8: committed as one, rolled back as one, run again after a lost race, refused for values."""
    migrate_at(pg_url)
    database = open_database(pg_url, SystemClock())
    try:
        assert await database.arun(names_after, lambda: "a") == ["a"]
        with pytest.raises(ValueError, match="no"):
            await database.arun(names_after, lambda: "b", ValueError("no"))
        tries: list[str] = []
        races = iter([RestartPlanError(), RestartPlanError(), None])

        def again(dialect: Dialect) -> Plan[list[Any]]:
            tries.append("c")
            return names_after(dialect, lambda: f"c{len(tries)}", next(races))

        assert await database.arun(again) == ["a", "c3"]
        for refused in (lambda: "nul\0", lambda: "lone \ud800"):
            with pytest.raises(StoreDataError):
                await database.arun(names_after, refused)
        assert await database.arun(names_after, lambda: "ü") == ["a", "c3", "ü"]
        kill_others(pg_url)
        with monkeypatch.context() as slow_machine:
            slow_machine.setattr(connection_pools, "TRUST_SECONDS", 600)
            with pytest.raises(StoreUnavailableError, match="does not answer"):
                await database.arun(names_after, lambda: "lost")
        assert await database.arun(names_after, lambda: "d") == ["a", "c3", "d", "ü"]
    finally:
        await database.aclose_loop()
        database.close()
