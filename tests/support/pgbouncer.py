"""A real PgBouncer in transaction mode, in front of a test's PostgreSQL."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from tests.support.waiting import until
from windlass.testing.postgres_binaries import Account

SESSIONS = 4
"""Sessions with the server: fewer than any two workers use, so that they really share them."""
CONFIGURATION = """
[databases]
* = host={host} port={port} user={user}{password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
idle_transaction_timeout = 10
server_reset_query_always = 0
"""


def program() -> str | None:
    """Where it is installed; Debian puts it where only root looks."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


def could_be_installed() -> bool:
    """Whether `.ci/run` should have seen to it."""
    return bool(os.environ.get("CI")) and os.geteuid() == 0 and shutil.which("apt-get") is not None


class PgBouncer:
    """Lives as long as the `with` block; can be killed and started again in between."""

    def __init__(self, server_url: str) -> None:
        self._server = urlsplit(server_url)
        self._account = Account.of_this_process()
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="windlass-pgbouncer-"))
        self._account.own(self._folder)
        text = CONFIGURATION.format(
            host=self._server.hostname,
            port=self._server.port or 5432,
            user=self._server.username or "postgres",
            password=f" password={self._server.password}" if self._server.password else "",
            own_port=self._port,
            sessions=SESSIONS,
        )
        self._file = self._folder / "pgbouncer.ini"
        self._file.write_text(text)
        self._file.chmod(0o644)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start, and return when it takes connections."""
        found = program()
        assert found is not None
        log = self._folder / "log"
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [found, "-q", str(self._file)], stdout=file, stderr=file, cwd="/", **self._account.popen_arguments()
            )
        until(self._answers, f"PgBouncer to answer; it said: {log.read_text()}")

    def kill(self) -> None:
        """SIGKILL, and be sure that it is dead."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(90)
            self._process = None

    def url(self, database_url: str) -> str:
        """The way to a database of the server through the pooler, as it has to be written."""
        netloc = f"postgres@127.0.0.1:{self._port}"
        return urlunsplit(urlsplit(database_url)._replace(netloc=netloc, query="pooled=true"))

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
