"""A SQLite file that cannot be written, cannot be read, or is no database: a clear message, and nothing is lost."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.crash.programs import bodies
from tests.crash.programs.application import make_app
from tests.support.facts import leases_that_ran_out, one, outcomes, statuses
from tests.support.invariants import check_invariants
from tests.support.programs import Programs
from tests.support.waiting import until
from windlass import StoreUnavailableError, Windlass
from windlass.stores.sqlite import files


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="windlass-test-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


READ_ONLY = "it is read-only; check the permissions of the file and its folder"


@pytest.mark.parametrize(
    ("file_mode", "folder_mode"),
    [(0o444, 0o777), (0o444, 0o555), (0o666, 0o555), (0o000, 0o777)],
    ids=["file", "file and folder", "folder", "no rights at all"],
)
def test_a_file_without_write_permission_is_refused_clearly_and_used_once_it_is_given(
    open_folder: Path, tmp_path: Path, programs: Programs, file_mode: int, folder_mode: int
):
    """J7.8: what is wrong and what to do about it; the same application goes on once the rights are there."""
    file = open_folder / "shop.db"
    url = f"sqlite:///{file}"
    app = make_app(url)
    kept = app.bind(bodies.note, 0).enqueue()
    app.close()
    for beside in open_folder.glob("shop.db-*"):
        beside.unlink()
    file.chmod(file_mode)
    open_folder.chmod(folder_mode)
    gate = open_folder / "gate"
    child = programs.start("sqlite_trouble", "unprivileged", url, f"sqlite:///{tmp_path / 'scratch.db'}", gate)
    assert str(file) in child.says(rf"^refused: .*{READ_ONLY}.*$")[0]
    open_folder.chmod(0o777)
    for path in open_folder.iterdir():
        path.chmod(0o666)
    gate.touch()
    child.says("^stored")
    assert child.exit_code() == 0
    assert app.get(kept.id).args == (0,)
    assert statuses(url) == {"PENDING": 2}
    app.close()


def test_a_file_that_cannot_grow_delays_jobs_and_loses_none(sqlite_url: str, programs: Programs):
    """J7.8: enqueues say why they fail, results wait in the worker; all goes on once there is room."""
    child = programs.start("sqlite_trouble", "full", sqlite_url)
    refusal = child.says(r"^refused: SQLite database \S+: (.*)$", 60)[1]
    assert refusal.startswith("reading or writing the file failed; check the disk")
    programs.open_gate()
    stored = int(child.says(r"^stored (\d+)")[1])
    child.says("^goes on$")
    assert child.exit_code() == 0
    assert sorted(int(n) for n in programs.ran()) == [-2, *range(stored + 1)]
    assert statuses(sqlite_url) == {"SUCCEEDED": stored + 2}
    assert set(outcomes(sqlite_url)) <= {"succeeded", "released"}
    assert one(sqlite_url, "PRAGMA integrity_check") == "ok"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"a file system of its own needs root: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(app: Windlass, stored: list[Any]) -> None:
    for number in range(100_000):
        stored.append(app.bind(bodies.note, number).enqueue())


def test_a_full_disk_is_reported_and_jobs_continue_once_there_is_room(small_disk: Path, programs: Programs):
    """J7.8: "the disk is full"; nothing that was acknowledged is lost."""
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 900_000)
    url = f"sqlite:///{small_disk / 'shop.db'}"
    app = make_app(url)
    stored: list[Any] = []
    with pytest.raises(StoreUnavailableError, match="the disk is full; free some space, work continues by itself"):
        fill(app, stored)
    assert len(stored) > 10
    filler.unlink()
    with app.worker(concurrency=5):
        assert app.bind(bodies.note, len(stored)).enqueue().result(90) == len(stored)
        assert [handle.result(90) for handle in stored] == list(range(len(stored)))
    app.close()
    assert sorted(int(n) for n in programs.ran()) == list(range(len(stored) + 1))
    assert one(url, "PRAGMA integrity_check") == "ok"


def test_a_worker_that_starts_on_a_full_disk_waits_for_room(small_disk: Path, programs: Programs):
    """J7.8: it says once what it waits for, and starts by itself."""
    url = f"sqlite:///{small_disk / 'shop.db'}"
    app = make_app(url)
    handle = app.bind(bodies.note, 7).enqueue()
    app.close()
    filler = small_disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    worker = programs.worker(url)
    worker.says("the store is not reachable, waiting up to 60 s for it: SQLite database .*shop.db: ")
    filler.unlink()
    assert worker.node
    assert handle.result(90) == 7
    assert worker.printed.count("the store is not reachable") == 1
    app.close()


def test_a_file_that_is_not_a_database_is_refused_and_stays_unchanged(tmp_path: Path):
    """A wrong path must not overwrite a file."""
    file = tmp_path / "letter.txt"
    file.write_text("Dear Sir or Madam,\n" * 500)
    before = file.read_bytes()
    app = make_app(f"sqlite:///{file}")
    with pytest.raises(StoreUnavailableError, match="it is not a SQLite database; check the path in the URL"):
        app.bind(bodies.note, 1).enqueue()
    with pytest.raises(StoreUnavailableError, match="it is not a SQLite database"), app.worker():
        pass
    app.close()
    assert file.read_bytes() == before


def test_a_damaged_file_is_refused_with_the_advice_to_restore_it(tmp_path: Path):
    file = tmp_path / "shop.db"
    app = make_app(f"sqlite:///{file}")
    app.enqueue_many([app.bind(bodies.note, n) for n in range(500)])
    app.close()
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    damaged = make_app(f"sqlite:///{file}")
    with pytest.raises(StoreUnavailableError, match="the file is damaged; restore it from a backup"):
        damaged.bind(bodies.note, 1).enqueue()
    damaged.close()


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path):
    app = make_app(f"sqlite:///{tmp_path / 'nowhere' / 'shop.db'}")
    with pytest.raises(StoreUnavailableError, match=r"nowhere/shop\.db.*(check that the folder exists|must exist)"):
        app.bind(bodies.note, 1).enqueue()
    app.close()


def test_a_worker_logs_why_it_cannot_start(tmp_path: Path, programs: Programs):
    worker = programs.worker(f"sqlite:///{tmp_path / 'nowhere' / 'shop.db'}")
    assert worker.exit_code() not in (0, 3)
    assert "StoreUnavailableError" in worker.printed
    until(lambda: "check that the folder exists" in worker.printed or "must exist" in worker.printed, "advice")


def test_a_file_that_another_program_holds_for_longer_than_every_lease_costs_time_only(
    sqlite_url: str, tmp_path: Path, programs: Programs
):
    """J7.8, J7.2: no node can send heartbeats, so none is lost; bodies end, and are written when the lock is free."""
    app = make_app(sqlite_url)
    workers = [programs.worker(sqlite_url, 2) for _ in range(2)]
    assert workers[0].node != workers[1].node
    handles = [app.bind(bodies.hold, n).enqueue() for n in range(4)]
    until(lambda: len(programs.ran("began")) == 4, "all jobs to begin")
    locker = programs.start("locker", sqlite_url, tmp_path / "release")
    locker.says("^locked$")
    programs.open_gate()
    until(lambda: len(programs.ran()) == 4, "the bodies to end without a store")
    until(lambda: leases_that_ran_out(sqlite_url) == 2, "all leases to run out")
    assert statuses(sqlite_url) == {"RUNNING": 4}
    (tmp_path / "release").touch()
    late = app.bind(bodies.note, 4).enqueue()
    assert [handle.result(90) for handle in (*handles, late)] == [0, 1, 2, 3, 4]
    assert outcomes(sqlite_url) == {"succeeded": 5}
    assert sorted(programs.ran()) == ["0", "1", "2", "3", "4"]
    for worker in workers:
        worker.terminate()
        assert worker.exit_code() == 0
        assert "lost" not in worker.printed
    app.close()
    check_invariants(sqlite_url)


def test_a_file_that_stays_locked_is_named_as_such_and_used_once_it_is_free(
    sqlite_url: str,
    tmp_path: Path,
    programs: Programs,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    """J7.8: callers get an error after a while, workers keep trying; outcomes of that time are written."""
    monkeypatch.setattr(files, "LOCK_DEADLINE", 0.5)  # ten seconds in real life
    app = make_app(sqlite_url)
    with app.worker(concurrency=5):
        held = app.bind(bodies.hold, 0).enqueue()
        until(lambda: programs.ran("began"), "the body to begin")
        locker = programs.start("locker", sqlite_url, tmp_path / "release")
        locker.says("^locked$")
        programs.open_gate()
        with pytest.raises(StoreUnavailableError, match=rf"it is locked by process {locker.pid} \(waited"):
            app.bind(bodies.note, 1).enqueue()
        until(lambda: "completer failed" in caplog.text, "the worker to notice")
        (tmp_path / "release").touch()
        assert held.result(90) == 0
        assert app.bind(bodies.note, 2).enqueue().result(90) == 2
    app.close()
    assert programs.ran() == ["0", "2"]
    assert outcomes(sqlite_url) == {"succeeded": 2}
    assert len(caplog.records) < 20, caplog.text
