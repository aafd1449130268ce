"""A SQLite file that is deleted or replaced under a program that uses it: nothing is accepted that would be lost."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.programs import Programs
from tests.support.waiting import until
from windlass import StoreUnavailableError, Windlass
from windlass.stores.dialect import Dialect
from windlass.stores.plan import Plan


@pytest.fixture
def app(sqlite_url: str, programs: Programs) -> Iterator[Windlass]:
    del programs  # its environment is where bodies write
    made = make_app(sqlite_url)
    made.bind(bodies.note, 0).enqueue()
    assert made.find().items
    yield made
    made.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "windlass.db"


def delete_all(file: Path) -> None:
    """Delete the database first: without its log alone, it is damaged, which is another error."""
    for path in sorted(file.parent.glob(f"{file.name}*")):
        path.unlink()


def replace(file: Path) -> None:
    backup = file.with_name("backup.db")
    shutil.copy(file, backup)
    backup.rename(file)


LOSSES = pytest.mark.parametrize(
    ("lose", "what"),
    [(delete_all, "was deleted"), (Path.unlink, "was deleted"), (replace, "was replaced by another file")],
    ids=["all files deleted", "only the database deleted", "replaced by a backup"],
)


@LOSSES
def test_every_operation_after_the_file_is_lost_is_an_error(
    app: Windlass, file: Path, lose: Callable[[Path], None], what: str
):
    """J7.8: the error names the path and what happened; nothing is written to a file that no other process sees."""
    lose(file)
    message = rf"{file}: the file {what}"
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match=message) as caught:
            app.bind(bodies.note, 1).enqueue()
        assert caught.value.lasting
        with pytest.raises(StoreUnavailableError, match=message):
            app.find()
    with pytest.raises(StoreUnavailableError, match=message), app.worker():
        pass


def test_an_operation_during_which_the_file_is_lost_is_the_same_error(app: Windlass, file: Path):
    """J7.8: SQLite reports a fault of the disk then, which is not what happened."""

    def lose_and_fail(dialect: Dialect) -> Plan[None]:
        del dialect
        delete_all(file)
        fault = sqlite3.OperationalError("disk I/O error")
        fault.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise fault
        yield

    with pytest.raises(StoreUnavailableError, match="was deleted") as caught:
        app.parts.database.read(lose_and_fail)
    assert caught.value.lasting


def test_a_job_is_not_enqueued_on_a_connection_of_the_users_to_a_lost_file(app: Windlass, file: Path):
    """J7.8: the transaction stays usable, and holds no job."""
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE orders (id)")
    delete_all(file)
    with pytest.raises(StoreUnavailableError, match="was deleted"):
        app.bind(bodies.note, 1).using(connection=connection).enqueue()
    connection.close()


def test_waiting_for_a_result_ends_with_an_error_when_the_file_is_lost(app: Windlass, file: Path):
    """J7.8: no caller waits for ever for what can no longer be read."""
    handle = app.bind(bodies.note, 1).enqueue()
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(handle.result, 60)
        until(lambda: app.parts.results.awaits, "the handle to be waited for")
        delete_all(file)
        with pytest.raises(StoreUnavailableError, match=r"was (deleted|replaced)"):
            result.result()


@LOSSES
def test_an_embedded_worker_ends_when_its_file_is_lost(
    app: Windlass,
    file: Path,
    programs: Programs,
    caplog: pytest.LogCaptureFixture,
    lose: Callable[[Path], None],
    what: str,
):
    """J7.8: it stops what it runs, says so in the log and in its state, and leaving it is no error."""
    handle = app.bind(bodies.hold, 7).enqueue()
    with app.worker() as worker:
        until(lambda: programs.ran("began"), "the body to begin")
        assert worker.failure is None
        lose(file)
        until(lambda: worker.failure, "the worker to end")
        assert what in str(worker.failure)
        assert worker.node is None
        assert not app.has_worker
    logged = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [line for line in logged if "its store is lost" in line and str(file) in line]
    assert [line for line in logged if "cannot be written" in line and str(handle.id) in line]


async def test_a_worker_on_the_callers_loop_ends_too(app: Windlass, file: Path):
    """J7.8."""
    async with app.worker() as worker:
        delete_all(file)
        while worker.failure is None:  # noqa: ASYNC110 - no event reports it
            await asyncio.sleep(0.01)
        assert worker.node is None


def test_an_application_that_is_closed_and_opened_again_uses_the_file_that_is_there(
    sqlite_url: str, app: Windlass, file: Path
):
    """J7.8: what was lost is reported once; a new application begins with the file at the path."""
    delete_all(file)
    with pytest.raises(StoreUnavailableError, match="was deleted"):
        app.find()
    again = make_app(sqlite_url)
    assert again.find().items == []
    with pytest.raises(StoreUnavailableError, match="was replaced"):
        app.find()
    again.close()
