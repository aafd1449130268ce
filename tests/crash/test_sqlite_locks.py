"""Waiting for SQLite's locks: one deadline for all of it, and an error that names the holder."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.programs import Programs
from windlass import StoreUnavailableError, Windlass
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan
from windlass.stores.sqlite import files

OWN = "it is locked by an open transaction of this program: commit it first, or pass its connection as connection="


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Windlass]:
    made = make_app(sqlite_url)
    yield made
    made.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of this program's own to the file."""
    with closing(sqlite3.connect(tmp_path / "windlass.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE orders (id)")
        yield connection


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second in place of ten."""
    monkeypatch.setattr(files, "LOCK_DEADLINE", 0.5)


@pytest.mark.usefixtures("short")
def test_an_open_transaction_of_this_program_is_named_as_the_holder(app: Windlass, own: sqlite3.Connection):
    """J7.8, J10.3: a caller that forgets connection= gets an error that says so; after the commit everything works."""
    app.migrate()
    own.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match=OWN):
        app.bind(bodies.note, 1).enqueue()
    app.bind(bodies.note, 2).using(connection=own).enqueue()
    own.execute("COMMIT")
    app.bind(bodies.note, 3).enqueue()
    assert sorted(job.args for job in app.find().items) == [(2,), (3,)]


@pytest.mark.usefixtures("short")
async def test_an_open_transaction_is_named_in_errors_of_coroutines_too(app: Windlass, own: sqlite3.Connection):
    """J7.8, J10.3."""
    app.migrate()
    own.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match=OWN):
        await app.bind(bodies.note, 1).aenqueue()
    own.execute("COMMIT")
    await app.bind(bodies.note, 2).aenqueue()
    assert [job.args for job in app.find().items] == [(2,)]


@pytest.mark.usefixtures("short")
def test_the_first_use_of_a_new_file_waits_for_a_lock(
    app: Windlass, own: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
):
    """J7.8: the switch to WAL is no exception; nothing is stored by the one that gave up."""
    own.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match=OWN):
        app.bind(bodies.note, 1).enqueue()
    monkeypatch.setattr(files, "LOCK_DEADLINE", 30.0)
    with ThreadPoolExecutor(1) as pool:
        enqueued = pool.submit(app.bind(bodies.note, 2).enqueue)
        with pytest.raises(TimeoutError):
            enqueued.result(0.2)
        own.execute("COMMIT")
        enqueued.result(90)
    assert [job.args for job in app.find().items] == [(2,)]


def test_all_waiting_writers_give_up_at_the_same_deadline(
    app: Windlass, own: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
):
    """J7.8: no caller waits first for earlier ones, and then for the lock: SQLite alone waits for a minute here."""
    monkeypatch.setattr(files, "BUSY_TIMEOUT_MS", 60_000)
    app.migrate()
    monkeypatch.setattr(files, "LOCK_DEADLINE", 0.5)
    own.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(app.bind(bodies.note, number).enqueue) for number in range(4)]
        for enqueued in waiting:
            assert OWN in str(enqueued.exception(30))
    own.execute("COMMIT")
    monkeypatch.setattr(files, "LOCK_DEADLINE", 30.0)
    app.bind(bodies.note, 9).enqueue()
    assert [job.args for job in app.find().items] == [(9,)], "whoever was told no is not stored later"


def test_a_long_transaction_of_the_programs_own_writer_is_named(app: Windlass, monkeypatch: pytest.MonkeyPatch):
    """J7.8: it blocks no process but its own."""
    app.migrate()
    began, gate = threading.Event(), threading.Event()

    def long(dialect: Dialect) -> Plan[str]:
        del dialect
        began.set()
        gate.wait(90)
        yield from ()
        return "done"

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(app.database.run, long)
        assert began.wait(90)
        monkeypatch.setattr(files, "LOCK_DEADLINE", 0.2)
        with pytest.raises(StoreUnavailableError, match="it is locked by this program's own writer"):
            app.bind(bodies.note, 1).enqueue()
        gate.set()
        assert running.result(90) == "done", "what has begun is not given up"


def test_a_stopped_process_that_holds_the_lock_file_is_named_and_readers_continue(
    app: Windlass, sqlite_url: str, programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """J7.8: waiting for our own lock file ends, too."""
    app.bind(bodies.note, 1).enqueue()
    holder = programs.start("lock_file", tmp_path / "windlass.db")
    holder.says("^locked$")
    holder.freeze()
    monkeypatch.setattr(files, "LOCK_DEADLINE", 0.5)
    with pytest.raises(StoreUnavailableError, match=rf"it is locked by process {holder.pid}, which is stopped"):
        app.bind(bodies.note, 2).enqueue()
    fresh = make_app(sqlite_url)
    assert [job.args for job in fresh.find().items] == [(1,)], "a reader needs no lock, not even to begin"
    fresh.close()
    holder.kill()
    monkeypatch.setattr(files, "LOCK_DEADLINE", 30.0)
    app.bind(bodies.note, 3).enqueue()
    assert sorted(job.args for job in app.find().items) == [(1,), (3,)]


@pytest.mark.usefixtures("short")
def test_an_application_closes_while_another_process_holds_the_lock_file(
    app: Windlass, programs: Programs, tmp_path: Path
):
    """J7.8: neither a program's end waits for ever."""
    app.bind(bodies.note, 1).enqueue()
    holder = programs.start("lock_file", tmp_path / "windlass.db")
    holder.says("^locked$")
    app.close()
    assert holder.process.poll() is None
