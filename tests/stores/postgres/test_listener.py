"""Hearing notifications of PostgreSQL, on a thread and on a loop: all, again after a cut, and none once closed."""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest
import uvloop

from tests.support.waiting import until
from windlass.domain.clock import SystemClock
from windlass.stores.channels import WORK
from windlass.stores.database import Database
from windlass.stores.open import open_database

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
LISTENING = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND datname = current_database()"

Received = queue.SimpleQueue[tuple[str, str]]


@pytest.fixture
def database(pg_url: str) -> Iterator[Database]:
    opened = open_database(pg_url, SystemClock())
    yield opened
    opened.close()


@pytest.fixture(params=["thread", *LOOPS])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop | None]:
    """Where to listen: a loop that runs on a thread, or none."""
    if request.param == "thread":
        yield None
        return
    loops: queue.SimpleQueue[asyncio.AbstractEventLoop] = queue.SimpleQueue()
    over = asyncio.Event()

    async def stay() -> None:
        loops.put(asyncio.get_running_loop())
        await over.wait()

    def live() -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(stay())

    thread = threading.Thread(target=live)
    thread.start()
    running = loops.get()
    yield running
    running.call_soon_threadsafe(over.set)
    thread.join()


def listeners(url: str) -> list[int]:
    with psycopg.connect(url, autocommit=True) as connection:
        return [pid for (pid,) in connection.execute(LISTENING).fetchall()]


def into(received: Received) -> Callable[[str, str], None]:
    return lambda channel, payload: received.put((channel, payload))


def test_all_notifications_are_received_in_order(database: Database, loop: asyncio.AbstractEventLoop | None):
    """J3.6: also several at once, and any payload."""
    received: Received = queue.SimpleQueue()
    wakeups = database.listen(into(received), loop)
    for number in range(200):
        database.notify(WORK, f"ünï {number}")
    assert [received.get(timeout=90) for _ in range(200)] == [(WORK, f"ünï {number}") for number in range(200)]
    wakeups.close()


def test_a_callback_that_fails_does_not_end_the_listening(database: Database, loop: asyncio.AbstractEventLoop | None):
    """J3.6: after any payload the next notification is received."""
    received: Received = queue.SimpleQueue()

    def fail_once(channel: str, payload: str) -> None:
        received.put((channel, payload))
        if payload == "bad":
            raise ValueError(payload)

    wakeups = database.listen(fail_once, loop)
    database.notify(WORK, "bad")
    database.notify(WORK, "good")
    assert [received.get(timeout=90)[1] for _ in range(2)] == ["bad", "good"]
    wakeups.close()


def test_after_a_lost_connection_it_listens_again_and_reports_that_anything_may_have_changed(
    database: Database, pg_url: str, loop: asyncio.AbstractEventLoop | None
):
    """J3.6, J7.8: notifications sent meanwhile are lost, so the callback is called as if anything had changed."""
    received: Received = queue.SimpleQueue()
    wakeups = database.listen(into(received), loop)
    for _ in range(2):
        (listener,) = listeners(pg_url)
        with psycopg.connect(pg_url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (listener,))
        assert received.get(timeout=90) == ("", "")
        database.notify(WORK, "again")
        assert received.get(timeout=90) == (WORK, "again")
    wakeups.close()


def test_a_closed_listener_receives_nothing_and_keeps_no_session(
    database: Database, pg_url: str, loop: asyncio.AbstractEventLoop | None
):
    """J7.6: closing twice is fine."""
    received: Received = queue.SimpleQueue()
    wakeups = database.listen(into(received), loop)
    assert len(listeners(pg_url)) == 1
    wakeups.close()
    wakeups.close()
    until(lambda: not listeners(pg_url), "the session to end")
    database.notify(WORK, "nobody")
    assert received.empty()


async def test_a_listener_on_a_loop_does_not_block_it(database: Database):
    """J3.6: opened from the loop itself, it must not wait for what only that loop can bring about."""
    loop, received = asyncio.get_running_loop(), asyncio.Queue[str]()
    thread = threading.get_ident()
    wakeups = database.listen(
        lambda _, payload: received.put_nowait(f"{payload} {threading.get_ident() == thread}"), loop
    )
    while received.empty():
        await database.anotify(WORK, "here")
        await asyncio.wait({asyncio.create_task(asyncio.sleep(0.02))})
    assert await received.get() == "here True"
    wakeups.close()
    await database.aclose_loop()


async def test_a_notification_that_the_server_refuses_fails_nothing(clean_pg_url: str):
    """J3.6: it follows the commit of a job, whose caller must not take it for an enqueue that failed."""
    database = open_database(clean_pg_url, SystemClock())
    try:
        database.notify("windlass_work", "x" * 8_000)
        await database.anotify("windlass_work", "x" * 8_000)
    finally:
        database.close()
