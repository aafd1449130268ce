"""Child processes of tests: started, watched by what they print, stopped in every way a process can be stopped."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.waiting import until

ROOT = Path(__file__).parents[2]

SHORT_LEASES = {
    "WINDLASS_NODE__HEARTBEAT_INTERVAL": "0.5",
    "WINDLASS_NODE__MISSED_HEARTBEATS": "3",
    "WINDLASS_NODE__RECOVERY_INTERVAL": "0.2",
}
"""A lost node is found within two seconds."""
STEADY_LEASES = {**SHORT_LEASES, "WINDLASS_NODE__MISSED_HEARTBEATS": "60"}
"""For nodes that live to the end of a test beside others: a busy machine may stall one, and it does not look lost."""


class Program:
    """One running child. Everything it prints goes to a file, which is what a test waits on."""

    def __init__(self, module: str, arguments: tuple[str, ...], environ: Mapping[str, str], output: Path) -> None:
        self.output = output
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environ},
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def printed(self) -> str:
        """All it has printed so far."""
        return self.output.read_text(errors="replace")

    def says(self, pattern: str, timeout: float = 90.0) -> re.Match[str]:
        """Wait until it has printed a line that matches."""

        def found() -> re.Match[str] | None:
            match = re.search(pattern, self.printed, re.MULTILINE)
            if match is None and self.process.poll() is not None:
                match = re.search(pattern, self.printed, re.MULTILINE)
                assert match is not None, f"it ended ({self.process.returncode}) without {pattern!r}:\n{self.printed}"
            return match

        try:
            return until(found, pattern, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; it said:\n{self.printed}") from None

    @property
    def node(self) -> str:
        """The id of the worker's node, once it is ready."""
        return self.says(r"^ready (\S+)$")[1]

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and be sure that it is dead."""
        self.process.kill()
        self.process.wait(90)

    def freeze(self) -> None:
        """SIGSTOP, and be sure that it stands still."""
        self.send(signal.SIGSTOP)
        until(lambda: self._state() == "T", "the process to be stopped")

    def resume(self) -> None:
        self.send(signal.SIGCONT)

    def _state(self) -> str:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def terminate(self) -> None:
        self.send(signal.SIGTERM)

    def exit_code(self, timeout: float = 300.0) -> int:
        """Wait for its end."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGABRT)  # faulthandler prints what every thread was doing
            self.process.wait(90)
            raise AssertionError(f"it did not end within {timeout:g} s:\n{self.printed}") from None


class Programs:
    """All children of one test; none outlives it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.runs = folder / "runs"
        """Where bodies write down that they ran, one line each: see tests/crash/programs/bodies.py."""
        self.runs.touch()
        self.gate = folder / "gate"
        """Bodies that hold wait until this file exists."""
        self._children: list[Program] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            if child.process.poll() is None:
                child.process.kill()
            child.process.wait(90)

    @property
    def environ(self) -> dict[str, str]:
        """What bodies need to know."""
        return {"TEST_RUNS": str(self.runs), "TEST_GATE": str(self.gate)}

    def start(self, program: str, *arguments: Any, environ: Mapping[str, str] | None = None) -> Program:
        """Start `tests.crash.programs.<program>`."""
        output = self._folder / f"{program}-{len(self._children)}.out"
        settings = SHORT_LEASES if environ is None else environ
        child = Program(
            f"tests.crash.programs.{program}",
            tuple(str(argument) for argument in arguments),
            {**self.environ, **settings},
            output,
        )
        self._children.append(child)
        return child

    def worker(
        self, url: str, concurrency: int = 10, *arguments: Any, environ: Mapping[str, str] | None = None
    ) -> Program:
        """Start a worker; ask for its `node` to wait until it is ready."""
        return self.start("worker", url, concurrency, *arguments, environ=environ)

    def ran(self, word: str = "ran") -> list[str]:
        """What was recorded under a name: `ran 7` gives `7`."""
        lines = [line.split() for line in self.runs.read_text().splitlines()]
        return [line[1] for line in lines if line[0] == word]

    def open_gate(self) -> None:
        self.gate.touch()
