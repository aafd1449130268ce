"""Connections of the user's own beside Windlass on one SQLite file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.ext.asyncio import create_async_engine

from windlass import InvalidOptionError
from windlass.domain.clock import SystemClock
from windlass.sqlite import prepare
from windlass.stores.sqlite import files
from windlass.stores.sqlite.files import Checkpoints, connect


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def writer(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection as Windlass has it, with something in the write-ahead log."""
    with closing(connect(str(file), "FULL", SystemClock().micros)) as connection:
        connection.execute("CREATE TABLE orders (id)")
        connection.execute("INSERT INTO orders VALUES (1)")
        yield connection


def test_a_prepared_connection_makes_no_checkpoints(file: Path, writer: sqlite3.Connection):
    """J7.8: whatever it writes; SQLite's default is a checkpoint after 1,000 pages."""
    before = file.stat().st_size
    with closing(sqlite3.connect(file)) as own:
        prepare(own)
        with own:
            own.execute("INSERT INTO orders SELECT zeroblob(6000000)")
        assert file.stat().st_size == before
    assert writer.execute("SELECT count(*) FROM orders").fetchone() == (2,)


def test_prepare_fits_the_connect_event_of_an_engine(file: Path):
    """J7.8: SQLAlchemy passes a record, too."""
    engine = create_engine(f"sqlite:///{file}")
    event.listen(engine, "connect", prepare)
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA wal_autocheckpoint")).scalar() == 0
    engine.dispose()


async def test_prepare_fits_the_connect_event_of_an_async_engine(file: Path):
    """J7.8."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
    event.listen(engine.sync_engine, "connect", prepare)
    async with engine.connect() as connection:
        assert (await connection.execute(text("PRAGMA wal_autocheckpoint"))).scalar() == 0
    await engine.dispose()


def test_something_else_is_refused(file: Path):
    with pytest.raises(InvalidOptionError, match="expected a connection"):
        prepare(str(file))


def test_a_checkpoint_waits_for_open_write_transactions(
    file: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
):
    """J7.8: a connection that knows nothing of the lock file is not met by a checkpoint while it writes."""
    monkeypatch.setattr(files, "CHECKPOINT_CHANGES", 0)
    before = file.stat().st_size
    checkpoints = Checkpoints(writer, str(file))
    with closing(sqlite3.connect(file, isolation_level=None)) as own:
        own.execute("BEGIN IMMEDIATE")
        checkpoints.after_commit()
        assert file.stat().st_size == before, "put off"
        own.execute("ROLLBACK")
        checkpoints.after_commit()
        assert file.stat().st_size > before


def test_no_connection_writes_during_a_checkpoint(
    file: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
):
    """J7.8: SQLite's own lock is held, which all connections respect."""
    monkeypatch.setattr(files, "CHECKPOINT_CHANGES", 0)
    refused: list[str] = []
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as own:

        def write_meanwhile(statement: str) -> None:
            if "wal_checkpoint" in statement:
                try:
                    own.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    refused.append(str(error))

        writer.set_trace_callback(write_meanwhile)
        Checkpoints(writer, str(file)).after_commit()
        writer.set_trace_callback(None)
    assert refused == ["database is locked"]
