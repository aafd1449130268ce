"""How the caller's connection is treated: as it was found it is left, and nothing is committed but what we began."""

import gc
import sqlite3
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from django.db import connections, transaction
from django.utils.connection import ConnectionProxy
from psycopg.rows import dict_row
from sqlalchemy import orm

from tests.client.callers import NOTHING, Lending, django_wrapper, engine_of, make_orders, path_of
from tests.engine import jobs
from tests.engine.apps import LONG, Apps, count, query, until
from windlass import DuplicateBusinessKeyError, JobStatus, Windlass
from windlass.domain.clock import VirtualClock


@pytest.fixture
def postgres(empty_postgres: str):
    apps = Apps(empty_postgres)
    make_orders(empty_postgres)
    yield apps
    apps.close()


@pytest.fixture
def sqlite(sqlite_url: str):
    apps = Apps(sqlite_url)
    apps()
    make_orders(sqlite_url)
    yield apps
    apps.close()


def enqueue_alone(app: Windlass, connection: object) -> None:
    """On a connection that commits every statement by itself: ours are whole, and there at once."""
    note = app.job(jobs.note).using(connection=connection)
    handle = note.using(tags=["t"], business_key="b").enqueue("stored")
    assert handle.status() is JobStatus.PENDING
    with pytest.raises(DuplicateBusinessKeyError):
        app.enqueue_many([note.bind("fine"), note.using(business_key="b", queue="new").bind("conflict")])
    assert [count(app.url, table) for table in ("job", "hot", "job_tag", "live_key", "queue")] == [1] * 5


def test_sqlite3_in_autocommit_stores_whole_jobs_at_once(sqlite: Apps):
    """api.md Submitting: `isolation_level=None`, and outside a transaction."""
    with closing(sqlite3.connect(path_of(sqlite.url), isolation_level=None)) as connection:
        enqueue_alone(sqlite(), connection)
        assert connection.in_transaction is False


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has `autocommit` since Python 3.12")
def test_sqlite3_with_autocommit_true_stores_whole_jobs_at_once(sqlite: Apps):
    """api.md Submitting: the newer way to say it."""
    with closing(sqlite3.connect(path_of(sqlite.url), autocommit=True)) as connection:  # type: ignore[call-overload]
        enqueue_alone(sqlite(), connection)
        assert connection.in_transaction is False


def test_psycopg_in_autocommit_stores_whole_jobs_at_once(postgres: Apps):
    """api.md Submitting: `autocommit=True`, and outside a transaction."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        enqueue_alone(postgres(), connection)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_psycopg_in_autocommit_and_in_a_pipeline_stores_whole_jobs_at_once(postgres: Apps):
    """api.md Submitting: also while the answer to a statement of the caller's is still to come."""
    with psycopg.connect(postgres.url, autocommit=True) as connection, connection.pipeline():
        connection.execute("INSERT INTO orders VALUES (1)")
        enqueue_alone(postgres(), connection)
    assert query(postgres.url, "SELECT count(*) FROM orders") == [(1,)]


def test_sqlalchemy_in_autocommit_stores_whole_jobs_at_once(apps: Apps):
    """api.md Submitting: `isolation_level="AUTOCOMMIT"`."""
    app = apps()
    with engine_of(apps.url, isolation_level="AUTOCOMMIT") as engine, engine.connect() as connection:
        enqueue_alone(app, connection)


def test_django_outside_atomic_stores_whole_jobs_at_once(apps: Apps):
    """api.md Submitting: Django commits every statement by itself there."""
    app = apps()
    with django_wrapper(apps.url) as wrapper:
        enqueue_alone(app, wrapper)
        assert wrapper.get_autocommit() is True


def test_djangos_own_name_for_its_connection_is_taken(apps: Apps):
    """api.md Submitting: `django.db.connection` stands for the connection of the thread that uses it."""
    note = apps().job(jobs.note)
    with django_wrapper(apps.url) as wrapper:
        connection = ConnectionProxy(connections, wrapper.alias)
        with transaction.atomic(using=wrapper.alias):
            note.using(connection=connection).enqueue("never")
            transaction.set_rollback(True, using=wrapper.alias)
        with transaction.atomic(using=wrapper.alias):
            note.using(connection=connection).enqueue("stored")
    assert count(apps.url, "job") == 1


def test_a_sqlalchemy_session_can_be_used_after_a_flush(apps: Apps):
    """api.md Submitting: no transaction was open, and the one that the enqueue opened is the session's."""
    app = apps()
    with engine_of(apps.url) as engine, orm.Session(engine) as session:
        note = app.job(jobs.note).using(connection=session)
        note.enqueue("never")
        assert session.in_transaction()
        session.rollback()
        assert count(apps.url, "job") == 0
        note.enqueue("stored")
        session.commit()
        assert not session.in_transaction()
    assert count(apps.url, "job") == 1


def test_sqlalchemy_may_be_configured_to_begin_by_itself(sqlite: Apps):
    """api.md Submitting: the way its manual names for SQLite: no transactions of the driver's, BEGIN by an event."""
    note = sqlite().job(jobs.note)
    with engine_of(sqlite.url) as engine:
        sqlalchemy.event.listen(engine, "connect", lambda driver, _: setattr(driver, "isolation_level", None))
        sqlalchemy.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        with engine.connect() as connection:
            note.using(connection=connection).enqueue("never")
            connection.rollback()
            note.using(connection=connection).enqueue("stored")
            assert count(sqlite.url, "job") == 0
            connection.commit()
    assert count(sqlite.url, "job") == 1


def test_settings_of_a_sqlite3_connection_are_unchanged(sqlite: Apps):
    """api.md Submitting: factories and modes; the transaction that the enqueue began is the caller's to end."""
    app = sqlite()
    with closing(sqlite3.connect(path_of(sqlite.url), isolation_level="EXCLUSIVE")) as connection:
        connection.row_factory, connection.text_factory = sqlite3.Row, bytes
        app.job(jobs.note).using(connection=connection).enqueue("x")
        assert connection.in_transaction
        assert (connection.row_factory, connection.text_factory) == (sqlite3.Row, bytes)
        assert connection.isolation_level == "EXCLUSIVE"
        connection.rollback()
    assert count(sqlite.url, "job") == 0


def test_automatic_checkpoints_of_a_borrowed_connection_are_off(sqlite: Apps):
    """deps.md SQLite: a checkpoint beside another writer may damage the file in versions before 3.51.3."""
    with closing(sqlite3.connect(path_of(sqlite.url))) as connection, connection:
        sqlite().job(jobs.note).using(connection=connection).enqueue("x")
        assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)


def test_settings_of_a_psycopg_connection_are_unchanged(postgres: Apps):
    """deps.md PgBouncer: nothing of ours is prepared in the caller's session either."""
    app = postgres()
    with psycopg.connect(postgres.url, row_factory=dict_row, prepare_threshold=0) as connection:
        note = app.job(jobs.note).using(connection=connection, tags=["t"], idempotency_key="i")
        for _ in range(7):
            note.enqueue("x")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        assert (connection.row_factory, connection.prepare_threshold) == (dict_row, 0)
        connection.prepare_threshold = None
        prepared = connection.execute("SELECT statement FROM pg_prepared_statements").fetchall()
        assert [row for row in prepared if "windlass" in row["statement"]] == []


def test_a_statement_that_fails_leaves_the_transaction_usable(postgres: Apps):
    """api.md Errors: the driver's error comes through, so that a caller's own retries know it; our part is undone."""
    note = postgres().job(jobs.note).using(idempotency_key="i", queue="new")
    with psycopg.connect(postgres.url) as other:
        note.using(connection=other, queue="default").enqueue("first, not committed")
        with psycopg.connect(postgres.url) as connection:
            connection.execute("INSERT INTO orders VALUES (1)")
            connection.execute("SET LOCAL lock_timeout = '100ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                note.using(connection=connection).enqueue("waits in vain")
            connection.execute("INSERT INTO orders VALUES (2)")
        other.rollback()
    assert query(postgres.url, "SELECT count(*) FROM orders") == [(2,)]
    assert [count(postgres.url, table) for table in ("job", "key", "queue")] == [0, 0, 0]


def test_a_locked_file_leaves_the_connection_usable(sqlite: Apps):
    """api.md Errors: SQLite's own error comes through; nothing is left half done."""
    note = sqlite().job(jobs.note)
    path = path_of(sqlite.url)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(sqlite3.connect(path, timeout=0.05)) as connection:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                note.using(connection=connection).enqueue("waits in vain")
            assert connection.in_transaction is False
            other.execute("ROLLBACK")
            note.using(connection=connection).enqueue("stored")
            connection.commit()
    assert count(sqlite.url, "job") == 1


@pytest.mark.parametrize("committed", [True, False])
def test_of_two_transactions_with_one_key_the_second_waits(postgres: Apps, committed: bool):
    """J1.4: the second waits for the first; it is a duplicate if that one commits, and stored if it rolls back."""
    app = postgres()
    app.job(jobs.note).enqueue("so that the queue is known, and nobody waits for it")
    note = app.job(jobs.note).using(idempotency_key="i")
    with psycopg.connect(postgres.url) as one, psycopg.connect(postgres.url) as two, ThreadPoolExecutor(1) as pool:
        two.execute("INSERT INTO orders VALUES (1)")
        first = note.using(connection=one).enqueue("first")
        second = pool.submit(note.using(connection=two).enqueue, "second")
        until(lambda: query(postgres.url, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'transactionid'"))
        (one.commit if committed else one.rollback)()
        handle = second.result(LONG)
        two.commit()
    assert (handle.duplicate, handle.id == first.id) == (committed, committed)
    assert (count(postgres.url, "job"), count(postgres.url, "key")) == (2, 1)
    assert query(postgres.url, "SELECT count(*) FROM orders") == [(1,)]


def test_the_time_is_current_in_an_old_transaction(postgres: Apps):
    """docs/adr/0001: `created_at` and due times are of the enqueue, not of the transaction's beginning."""
    app = postgres()
    with psycopg.connect(postgres.url) as connection:
        begun, _ = connection.execute("SELECT now(), pg_sleep(0.3)").fetchone() or (None, None)
        handle = app.job(jobs.note).using(connection=connection, delay=100).enqueue("x")
    job = app.get(handle.id)
    assert job.due_at is not None
    assert (job.created_at - begun).total_seconds() >= 0.3
    assert (job.due_at - begun).total_seconds() >= 100.3


def test_a_virtual_clock_is_followed(lending: Lending):
    """api.md Testing: on the caller's connection too."""
    clock = VirtualClock()
    app = lending.apps(clock=clock)
    note = app.job(jobs.note)
    for expected in (clock.now(), clock.now()):
        with lending.transaction() as caller:
            handle = note.using(connection=caller.connection).enqueue("x")
        assert app.get(handle.id).created_at == expected
    assert lending.counts() != NOTHING


def test_the_tables_are_made_in_the_transaction_if_there_are_none(tmp_path: Path):
    """api.md: no migration step on SQLite, also when the very first enqueue stands in an open transaction."""
    url = f"sqlite:///{tmp_path / 'fresh.db'}"
    app = Windlass(url)
    note = app.job(jobs.note)
    with closing(sqlite3.connect(path_of(url))) as connection:
        connection.execute("CREATE TABLE orders (id int)")
        for word in ("never", "once more"):
            connection.execute("INSERT INTO orders VALUES (1)")
            note.using(connection=connection).enqueue(word)
            note.using(connection=connection).enqueue(word)
            connection.rollback()
            assert query(url, "SELECT name FROM sqlite_master WHERE type = 'table'") == [("orders",)]
        connection.execute("INSERT INTO orders VALUES (1)")
        handle = note.using(connection=connection).enqueue("stored")
        connection.commit()
        with app.worker():
            assert handle.result(timeout=LONG) == "stored"
            with connection:
                later = note.using(connection=connection).enqueue("later")
            assert later.result(timeout=LONG) == "later"
    app.close()


def test_a_connection_is_not_kept_alive(postgres: Apps):
    """api.md Options: the one option that is never stored, and never remembered."""
    app = postgres()
    connection = psycopg.connect(postgres.url)
    app.job(jobs.note).using(connection=connection).enqueue("x")
    connection.close()
    gone = weakref.ref(connection)
    del connection
    gc.collect()
    assert gone() is None


def test_threads_enqueue_on_connections_of_their_own(lending: Lending):
    """api.md Submitting: nothing is shared between calls."""
    app = lending.apps()
    note = app.job(jobs.note)
    together = threading.Barrier(4)

    def enqueue(number: int) -> None:
        together.wait(LONG)
        with lending.transaction() as caller:
            note.using(connection=caller.connection, idempotency_key=str(number)).enqueue(str(number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(enqueue, range(4)))
    assert count(lending.url, "job") == count(lending.url, "key") == 4


def test_sqlalchemy_logs_and_wraps_what_happens_on_its_connections(apps: Apps):
    """api.md Submitting: our statements go through the library, so its hooks see them and its errors are raised."""
    app = apps()
    seen: list[str] = []
    with engine_of(apps.url) as engine:
        sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *event: seen.append(event[2]))
        with engine.begin() as connection:
            app.job(jobs.note).using(connection=connection).enqueue("x")
    assert any("windlass_job" in text for text in seen)
