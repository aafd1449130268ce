"""`windlass worker` while its store is away, and signals that come before it has begun."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.commands import Commands
from tests.support.facts import path_of
from tests.support.waiting import until
from windlass.stores.sqlite.files import WriteLock

SLOW = """
import time
from pathlib import Path

from windlass import Windlass

app = Windlass()


@app.job
def charge() -> None: ...


Path(__file__).with_name("importing").touch()
while not Path(__file__).with_name("go-on").exists():
    time.sleep(0.01)
"""


def lock(url: str) -> sqlite3.Connection:
    """Hold SQLite's write lock."""
    connection = sqlite3.connect(path_of(url), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return connection


@pytest.mark.parametrize("module", ["windlass", "windlass_command"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_signal_before_the_start_ends_a_worker_well(
    sqlite_commands: Commands, module: str, number: signal.Signals, processes: str
):
    """J7.8, J7.6: exit code 0 while the application is still being imported, with a supervisor and without."""
    folder = sqlite_commands.folder
    (folder / "slow.py").write_text(SLOW)
    command = [sys.executable, "-m", module, "worker", "slow:app", "--processes", processes]
    environ = {**os.environ, "WINDLASS_URL": sqlite_commands.url}
    with subprocess.Popen(command, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True) as worker:
        until((folder / "importing").exists, "the import to begin")
        worker.send_signal(number)
        _, printed = worker.communicate(timeout=300)
    assert worker.returncode == 0, printed
    assert printed == ""


def test_a_worker_waits_for_a_locked_file_and_then_starts(sqlite_commands: Commands, shop_on):
    """J7.8: it says once what it waits for."""
    shop = shop_on(sqlite_commands.url)
    handle = shop.enqueue("charge", 42)
    with closing(lock(sqlite_commands.url)) as holder:
        worker = sqlite_commands.start("worker", "shop:app")
        line = worker.says(
            r"WARNING +windlass\.worker: the store is not reachable, waiting up to 60 s for it: (.*)$", 60
        )[1]
        assert f"it is locked by process {os.getpid()}" in line
        holder.execute("ROLLBACK")
    assert handle.result(timeout=90).startswith("charged 42")
    assert worker.printed.count("the store is not reachable") == 1
    worker.terminate()
    assert worker.exit_code() == 0


def test_a_worker_that_waits_for_the_lock_file_stops_on_a_signal(sqlite_commands: Commands, shop_on):
    """J7.8: it shows its banner and the process that holds the file, and obeys SIGTERM meanwhile; exit code 0."""
    shop_on(sqlite_commands.url).enqueue("charge", 1)
    with WriteLock(path_of(sqlite_commands.url)).held():
        worker = sqlite_commands.start("worker", "shop:app")
        worker.says(rf"the store is not reachable.* it is locked by process {os.getpid()} \(waited 10 s\)$", 60)
        worker.says("store: SQLite")
        worker.terminate()
        assert worker.exit_code() == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_gives_up_on_a_store_that_stays_away(sqlite_commands: Commands, processes: str):
    """J7.8: exit code 1, with the reason."""
    url = "postgresql://nobody@127.0.0.1:1/none"
    code, printed = sqlite_commands.run(
        "worker", "shop:app", "--wait", "0.5", "--processes", processes, environ={"WINDLASS_URL": url}
    )
    assert code == 1
    assert printed.count("the store is not reachable, waiting up to 0.5 s for it: PostgreSQL 127.0.0.1:1/none") == 1
    assert "Error: PostgreSQL 127.0.0.1:1/none does not answer" in printed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_for_a_server(sqlite_commands: Commands, number: signal.Signals):
    """J7.8."""
    environ = {"WINDLASS_URL": "postgresql://nobody@127.0.0.1:1/none"}
    worker = sqlite_commands.start("worker", "shop:app", environ=environ)
    worker.says("the store is not reachable")
    worker.send(number)
    assert worker.exit_code() == 0


def test_errors_that_waiting_cannot_cure_are_reported_at_once(sqlite_commands: Commands):
    """J7.8: a missing folder, or a file that is no database, is no outage."""
    letter = sqlite_commands.folder / "letter.txt"
    letter.write_text("Dear Sir or Madam,\n" * 500)
    code, printed = sqlite_commands.run("worker", "shop:app", environ={"WINDLASS_URL": f"sqlite:///{letter}"})
    assert code == 1
    assert "it is not a SQLite database" in printed
    assert "the store is not reachable" not in printed


def test_a_worker_warns_that_no_job_was_ever_in_a_queue(sqlite_commands: Commands, shop_on):
    """J7.8: a misspelt name is seen at the start."""
    shop_on(sqlite_commands.url).enqueue("charge", 1, queue="billing")
    worker = sqlite_commands.start("worker", "shop:app", "--queues", "blling,billing")
    worker.says(r"WARNING .*no job was ever enqueued in blling; queues with jobs: billing$")
    worker.says("^ready")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_exits_when_its_file_is_deleted(sqlite_commands: Commands, shop_on, processes: str):
    """J7.8: an error that names the file, what cannot be written, and exit code 1; a supervisor starts another."""
    worker = sqlite_commands.start("worker", "shop:app", "--processes", processes)
    worker.says("^ready")
    shop_on(sqlite_commands.url).enqueue("endless", "begun")
    until((sqlite_commands.folder / "begun").exists, "the body to begin")
    file = Path(path_of(sqlite_commands.url))
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()
    worker.says(
        rf"ERROR +windlass\.worker: node \S+ shuts down, its store is lost: SQLite database {file}: the file was"
    )
    worker.says(r"ERROR +windlass\.worker: 1 outcomes cannot be written because the store is lost: jobs \S+$")
    if processes == "1":
        assert worker.exit_code() == 1
    else:
        worker.says(r"ended with code 1 unexpectedly after .*; restarting it")
        worker.terminate()
        worker.exit_code()
